"""Drives planned sessions through an engine: a closed loop of B sessions, each call forced along its tape."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agspec.engine.config import ROLE, SESSION, TENANT
from agspec.engine.tape import TAPE
from agspec.replay.plan import PlannedCall

METRICS = {
    "vllm:spec_decode_num_drafts": "num_drafts",
    "vllm:spec_decode_num_draft_tokens": "num_draft_tokens",
    "vllm:spec_decode_num_accepted_tokens": "num_accepted_tokens",
}


@dataclass
class Run:
    """What one run of all sessions took; times in seconds.

    ``decode_s``: time in which at least one request was between its first and its last token. ``queue_s``: what calls
    waited to be scheduled, all together. ``num_cached_tokens``: of their prompts, taken from the prefix cache.
    """

    num_calls: int = 0
    num_tokens: int = 0
    num_steps: int = 0
    decode_s: float = 0.0
    wall_s: float = 0.0
    queue_s: float = 0.0
    num_cached_tokens: int = 0
    tape_followed: bool = True
    num_drafts: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    accepted_at: list[int] = field(default_factory=list)
    drafted_at: list[int] = field(default_factory=list)
    by_source: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def tokens_per_s(self) -> float:
        """Decode: tokens after each call's first over ``decode_s``."""
        return (self.num_tokens - self.num_calls) / self.decode_s if self.decode_s else 0.0

    @property
    def end_to_end_tokens_per_s(self) -> float:
        """All tokens over the whole run, prefill included."""
        return self.num_tokens / self.wall_s if self.wall_s else 0.0


@dataclass
class _Live:
    call: PlannedCall
    slot: int
    first: float | None = None
    last: float = 0.0
    tokens: list[int] = field(default_factory=list)


def drive(
    llm: Any, sessions: Sequence[Sequence[PlannedCall]], *, batch: int, tenant: str, agspec: bool, full: bool = False
) -> Run:
    """Replay ``sessions``, ``batch`` of them at a time; the rows of a batch are distinct sessions.

    ``agspec``: the engine drafts with it, so opened files are pushed. ``full``: what was cut from prompts is, too.
    """
    engine = llm.llm_engine
    before = metrics(llm)
    waiting = [list(session) for session in sessions]
    slots: list[list[PlannedCall]] = [[] for _ in range(batch)]
    live: dict[str, _Live] = {}
    spans: list[tuple[float, float]] = []
    run = Run()
    number = 0
    started = time.perf_counter()
    while True:
        for slot in range(batch):
            if any(other.slot == slot for other in live.values()):
                continue
            if not slots[slot] and waiting:
                slots[slot] = waiting.pop(0)
            if slots[slot]:
                call = slots[slot].pop(0)
                if agspec:
                    _tell(llm, call, tenant, idle=not live, full=full)
                live[_add(engine, str(number), call, tenant)] = _Live(call, slot)
                number += 1
        if not live:
            break
        outputs = engine.step()
        now = time.perf_counter()
        for output in outputs:
            entry = live[output.request_id]
            came = list(output.outputs[0].token_ids)
            if len(came) > len(entry.tokens):
                run.num_steps += 1
                entry.first = now if entry.first is None else entry.first
                entry.last, entry.tokens = now, came
            if output.finished:
                del live[output.request_id]
                run.num_calls += 1
                run.num_tokens += len(entry.tokens)
                run.num_cached_tokens += output.num_cached_tokens
                run.queue_s += output.metrics.scheduled_ts - output.metrics.queued_ts
                run.tape_followed &= entry.tokens == entry.call.tape.tolist()
                spans.append((entry.first or now, entry.last))
    run.wall_s = time.perf_counter() - started
    run.decode_s = _union(spans)
    for name, value in metrics(llm).items():
        setattr(run, name, value - before[name])
    return run


def _add(engine: Any, request: str, call: PlannedCall, tenant: str) -> str:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    params = SamplingParams(
        temperature=0.0,
        max_tokens=int(call.tape.size),
        detokenize=False,
        output_kind=RequestOutputKind.CUMULATIVE,
        extra_args={TAPE: call.tape.tolist(), SESSION: call.session, TENANT: tenant, ROLE: call.role},
        structured_outputs=StructuredOutputsParams(choice=["a"]),
    )
    engine.add_request(request, {"prompt_token_ids": call.prompt.tolist()}, params)
    return request


def _tell(llm: Any, call: PlannedCall, tenant: str, *, idle: bool, full: bool) -> None:
    if idle:
        llm.collective_rpc("agspec_settle")
    for file in call.files:
        llm.collective_rpc("agspec_open_file", args=(tenant, list(file.key), [form.tolist() for form in file.forms]))
    if full and call.uncut is not None:
        llm.collective_rpc("agspec_remember", args=(tenant, call.session, call.uncut.tolist()))


def metrics(llm: Any) -> dict[str, int]:
    """vLLM's own counts of drafts, drafted and accepted tokens since the engine started."""
    found = dict.fromkeys(METRICS.values(), 0)
    for metric in llm.get_metrics():
        if metric.name in METRICS:
            found[METRICS[metric.name]] += int(metric.value)
    return found


def _union(spans: list[tuple[float, float]]) -> float:
    total, reach = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reach))
        reach = max(reach, end)
    return total
