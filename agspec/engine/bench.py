"""``agspec bench``: recorded sessions on a real engine, methods interleaved, tokens forced along the tapes.

Drafted methods and ``none`` share one engine and are switched by rpc, in turn within each repeat; ``async``, an engine
without speculation, runs in one of its own before and after. Stores, suffix cache and prefix cache are emptied before
every run: what a prompt finds in the prefix cache its own session left there, under every method the same, and is told.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from agspec.engine import patches
from agspec.engine.drive import Run, drive
from agspec.engine.launcher import SWITCH, make_llm
from agspec.engine.phase import run_phase
from agspec.engine.switch import DRAFTED
from agspec.errors import SettingsError
from agspec.replay.corpus import corpus_told
from agspec.replay.environment import environment
from agspec.replay.plan import PlannedCall, by_session
from agspec.settings import Settings

METHODS = ("async", *DRAFTED)
Tenants = list[tuple[str, list[list[PlannedCall]]]]
"""(tenant, its sessions): one a trace file."""


class Job(BaseModel):
    """What a bench measures."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    model: str
    methods: tuple[str, ...]
    batches: tuple[int, ...]
    repeats: int
    dtype: str
    max_model_len: int
    full_history: bool = False
    settings: Settings


def bench(job: Job, tenants: Tenants) -> dict[str, Any]:
    """Run ``job`` over ``tenants``; ``{"settings", "rows", "missing"}``, one row a method and batch size."""
    unknown = [method for method in job.methods if method not in METHODS]
    if unknown:
        raise SettingsError(f"methods: want some of {', '.join(METHODS)}, got {', '.join(unknown)}")
    missing = {}
    if importlib.util.find_spec("arctic_inference") is None:
        for method in ("suffix", "agspec-suffix"):
            if method in job.methods:
                missing[method] = "arctic-inference is not installed; it comes with: pip install 'agspec[bench]'"
    drafted = tuple(m for m in job.methods if m != "async" and m not in missing)
    runs: dict[tuple[str, int], list[Run]] = {}
    if "async" in job.methods:
        _collect(runs, run_phase(_async_phase, job, tenants, job.repeats - job.repeats // 2))
    if drafted:
        _collect(runs, run_phase(_drafted_phase, job, tenants, drafted))
    if "async" in job.methods and job.repeats > 1:
        _collect(runs, run_phase(_async_phase, job, tenants, job.repeats // 2))
    rows = [_row(method, batch, runs) for batch in job.batches for method in job.methods if (method, batch) in runs]
    told = _told(job, tenants)
    return {"kind": "bench", "settings": told, "environment": environment(), "missing": missing, "rows": rows}


def _told(job: Job, tenants: Tenants) -> dict[str, Any]:
    sessions = [calls for _, group in tenants for calls in group]
    corpus = corpus_told(job.settings.corpus, (call.session for calls in sessions for call in calls))
    return {
        **job.model_dump(mode="json"),
        **({} if corpus is None else {"corpus_info": corpus}),
        "traces": [name for name, _ in tenants],
        "num_sessions": len(sessions),
        "num_calls": sum(len(calls) for calls in sessions),
        "num_tokens": sum(int(call.tape.size) for calls in sessions for call in calls),
        "num_cut_prompts": sum(call.uncut is not None for calls in sessions for call in calls),
    }


def _collect(runs: dict[tuple[str, int], list[Run]], more: list[tuple[str, int, Run]]) -> None:
    for method, batch, run in more:
        runs.setdefault((method, batch), []).append(run)


def _async_phase(job: Job, tenants: Tenants, repeats: int) -> list[tuple[str, int, Run]]:
    patches.force_tapes()
    llm = make_llm(
        job.model, settings=job.settings, proposer=None, dtype=job.dtype,
        max_model_len=job.max_model_len, max_num_seqs=max(job.batches),
    )  # fmt: skip
    _warm_up(llm, tenants)
    return [("async", batch, _one(llm, tenants, batch, agspec=False)) for _ in range(repeats) for batch in job.batches]


def _drafted_phase(job: Job, tenants: Tenants, methods: Sequence[str]) -> list[tuple[str, int, Run]]:
    patches.force_tapes()
    llm = make_llm(
        job.model, settings=job.settings, proposer=SWITCH, dtype=job.dtype,
        max_model_len=job.max_model_len, max_num_seqs=max(job.batches),
    )  # fmt: skip
    for method in methods:
        llm.collective_rpc("agspec_switch", args=(method,))
        _warm_up(llm, tenants)
    runs = []
    for repeat in range(job.repeats):
        for batch in job.batches:
            for i in range(len(methods)):
                method = methods[(i + repeat) % len(methods)]
                llm.collective_rpc("agspec_switch", args=(method,))
                run = _one(llm, tenants, batch, agspec=method.startswith("agspec"), full=job.full_history)
                if method.startswith("agspec"):
                    stats = llm.collective_rpc("agspec_stats")[0]
                    for key in ("by_source", "accepted_at", "drafted_at"):
                        setattr(run, key, stats[key])
                runs.append((method, batch, run))
    return runs


def _one(llm: Any, tenants: Tenants, batch: int, *, agspec: bool, full: bool = False) -> Run:
    llm.reset_prefix_cache()
    total = Run()
    for tenant, sessions in tenants:
        run = drive(llm, sessions, batch=batch, tenant=tenant, agspec=agspec, full=full)
        for key in ("num_calls", "num_tokens", "num_steps", "decode_s", "wall_s", "queue_s", "num_cached_tokens",
                    "num_drafts", "num_draft_tokens", "num_accepted_tokens"):  # fmt: skip
            setattr(total, key, getattr(total, key) + getattr(run, key))
        total.tape_followed &= run.tape_followed
    return total


def _warm_up(llm: Any, tenants: Tenants) -> None:
    """The first call, a few tokens of it: compiles and allocates what a first request does."""
    call = tenants[0][1][0][0]
    drive(llm, [[call.shortened(24)]], batch=1, tenant="\0warm-up", agspec=False)


def _row(method: str, batch: int, runs: dict[tuple[str, int], list[Run]]) -> dict[str, Any]:
    mine = runs[method, batch]
    last = mine[-1]
    speed = [run.tokens_per_s for run in mine]
    return {
        "method": method,
        "batch": batch,
        "tokens_per_s": float(np.median(speed)),
        "tokens_per_s_interval": interval(speed),
        "end_to_end_tokens_per_s": float(np.median([run.end_to_end_tokens_per_s for run in mine])),
        "queue_ms_a_call": float(np.median([1000 * run.queue_s / run.num_calls for run in mine])),
        "num_cached_tokens": last.num_cached_tokens,
        "ratio_to_none": _ratio(mine, runs.get(("none", batch))),
        "ratio_to_suffix": _ratio(mine, runs.get(("suffix", batch))),
        "ratio_to_async": _ratio(mine, runs.get(("async", batch))),
        "num_steps": last.num_steps,
        "num_tokens": last.num_tokens,
        "num_drafts": last.num_drafts,
        "num_draft_tokens": last.num_draft_tokens,
        "num_accepted_tokens": last.num_accepted_tokens,
        "mean_acceptance_length": last.num_tokens / last.num_steps if last.num_steps else 0.0,
        "by_source": last.by_source,
        "accepted_at": last.accepted_at,
        "drafted_at": last.drafted_at,
        "tape_followed": all(run.tape_followed for run in mine),
        "repeats": len(mine),
    }


def _ratio(mine: list[Run], base: list[Run] | None) -> dict[str, Any] | None:
    """Median and interval of the pairwise ratios of decode speed, repeat by repeat."""
    if not base:
        return None
    pairs = [a.tokens_per_s / b.tokens_per_s for a, b in zip(mine, base, strict=False) if b.tokens_per_s]
    return {"median": float(np.median(pairs)), "interval": interval(pairs)} if pairs else None


def interval(values: Sequence[float]) -> list[float]:
    """95% bootstrap interval of the median (2,000 resamples, fixed seed); the range below 3 values."""
    if len(values) < 3:
        return [min(values), max(values)]
    draws = np.random.default_rng(0).choice(np.asarray(values), (2000, len(values)))
    low, high = np.percentile(np.median(draws, axis=1), [2.5, 97.5])
    return [float(low), float(high)]


def plan_tenants(
    planned: Sequence[tuple[str, list[PlannedCall]]], *, max_calls: int | None, sessions: int | None
) -> Tenants:
    """Planned traces as tenants; the first ``sessions`` sessions of each, the first ``max_calls`` calls of those."""
    return [(name, by_session(calls, max_calls=max_calls)[:sessions]) for name, calls in planned]
