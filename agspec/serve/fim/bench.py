"""``agspec bench fim``: simulated editors on the embedded model, both orders, with and without drafts."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agspec.fim.families import Order
from agspec.replay.environment import environment
from agspec.serve.config import ServeConfig
from agspec.serve.fim.forced import FAMILY, MODULE
from agspec.serve.fim.overhead import overhead
from agspec.serve.fim.typist import Page, Seen, pages, play
from agspec.serve.process import Server
from agspec.settings import Settings
from agspec.tokens import Tokenizer, load_tokenizer

COST = Path("cpu-smollm2-135m")
NO_DRAFTS = 1000.0
"""A drafted token that costs so many steps is never worth it."""
WARM_EDITORS, WARM_S = 2, 5.0
"""What is compiled and cached first is not timed."""


@dataclass(frozen=True)
class FimJob:
    """What is measured. ``seconds``: of typing, for each row."""

    editors: int = 10
    seconds: float = 60
    orders: tuple[Order, ...] = ("psm", "spm")
    max_model_len: int = 4096


def bench_fim(job: FimJob, told: Callable[[int, int, str], None]) -> dict[str, Any]:
    """Rows, the server's own part, and what they were measured with; ``told(done, total, what)`` as it goes on."""
    tokenizer, editors = load_tokenizer("embedded"), pages(job.editors)
    ours = {name: quantiles(values) for name, values in overhead(editors, tokenizer).items()}
    runs = [(order, drafts) for order in job.orders for drafts in (True, False)]
    rows = []
    for done, (order, drafts) in enumerate(runs):
        told(done, len(runs), f"{order}, drafts {'on' if drafts else 'off'}")
        rows.append(_row(job, order, drafts, editors, tokenizer))
    note = "the embedded model knows no middle: its text is forced, so this is latency, not quality"
    return {
        "kind": "fim", "note": note, "settings": asdict(job), "environment": environment(), "overhead": ours,
        "rows": rows,
    }  # fmt: skip


def quantiles(values: list[float]) -> dict[str, float] | None:
    """p50 and p95; None of nothing."""
    return {f"p{p}": round(float(np.percentile(values, p)), 3) for p in (50, 95)} if values else None


def _row(job: FimJob, order: Order, drafts: bool, editors: list[Page], tokenizer: Tokenizer) -> dict[str, Any]:
    settings = Settings(cost=COST) if drafts else Settings(cost_ratio=NO_DRAFTS)
    config = ServeConfig(fim_family=str(FAMILY), fim_order=order)
    flags = ("--max-model-len", str(job.max_model_len), "--max-num-seqs", str(job.editors))
    with (
        tempfile.TemporaryDirectory() as folder,
        Server.with_agspec(
            Path(folder) / "log", settings=settings, config=config, flags=flags, module=MODULE
        ) as server,
    ):  # fmt: skip
        asyncio.run(play(server.url, editors[:WARM_EDITORS], WARM_S, tokenizer, order))
        before = _accepted(server)
        seen = asyncio.run(play(server.url, editors, job.seconds, tokenizer, order))
        accepted, stats = _accepted(server) - before, server.stats()
    head = {"order": order, "drafts": drafts, "editors": job.editors, "seconds": job.seconds}
    return {**head, **figures(seen), "num_accepted_tokens": accepted,
            "errors": {**stats["errors"], **stats["api_errors"]}}  # fmt: skip


def _accepted(server: Server) -> int:
    return int(server.stats()["by_role"].get("fim", {}).get("num_accepted_tokens", 0))


def figures(seen: Seen) -> dict[str, Any]:
    """What a row says of it."""
    answered = len(seen.prompt)
    wanted = seen.num_given_up + seen.num_asked
    return {
        **{name: quantiles([float(value) for value in getattr(seen, name)])
           for name in ("first_ms", "whole_ms", "prepare_ms", "prompt", "fresh")},
        "num_keys": seen.num_keys, "num_asked": seen.num_asked, "num_answered": answered,
        "num_from_cache": seen.num_from_cache, "num_accepted": seen.num_accepted,
        "again_share": round(float(np.mean(seen.again)), 4) if seen.again else None,
        "cached_share": round(1 - sum(seen.fresh) / max(1, sum(seen.prompt)), 4),
        "fresh_tokens_a_key": round(sum(seen.fresh) / max(1, seen.num_keys), 2),
        "given_up_share": round(seen.num_given_up / max(1, wanted), 4),
        "cancelled_share": round((seen.num_asked - answered) / max(1, seen.num_asked), 4),
        "tokens_a_completion": round(sum(seen.tokens) / max(1, answered), 2),
    }  # fmt: skip
