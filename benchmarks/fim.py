"""Simulated editors on a real engine: ``python -m benchmarks.fim [--editors 10] [--seconds 60]``.

Each types a source file on from its middle, at a person's pace (from a seed), with ``agspec.fim.client`` in front of
it, on ``agspec serve embedded``. The embedded model knows no middle: its markers are mapped to spare added tokens, and
what it would suggest is forced (the file's own next line), so this measures latency, not quality. Both orders, with and
without drafts: time to the first text and to the whole suggestion, the server's own part, tokens prefilled, cache hits,
requests cancelled. The result goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from agspec.fim.client import Completer, Request
from agspec.replay.environment import environment
from agspec.serve.config import ServeConfig
from agspec.settings import Settings
from agspec.tokens import Tokenizer, load_tokenizer
from benchmarks.corpus import write_result
from benchmarks.e2e.server import TapedServer

FAMILY = Path(__file__).with_name("fim.toml")
KEY_S = 0.16
"""Between keystrokes, the median; lines are thought about for some of these."""
ACCEPTED = 0.3
"""Of the suggestions that are right, the share that is taken."""


@dataclass
class Seen:
    """Of one run: ms, tokens, and how often what happened."""

    first_ms: list[float] = field(default_factory=list)
    whole_ms: list[float] = field(default_factory=list)
    prepare_ms: list[float] = field(default_factory=list)
    prompt: list[int] = field(default_factory=list)
    fresh: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    num_keys: int = 0
    num_asked: int = 0
    num_cancelled: int = 0
    num_before_work: int = 0
    num_accepted: int = 0


class Typist:
    """One editor and one file."""

    def __init__(self, number: int, path: Path, client: httpx.AsyncClient, tokenizer: Tokenizer, seen: Seen) -> None:
        self._name = f"editor {number}"
        self._path = path
        self._text = path.read_text("utf-8")
        self._rng = random.Random(number)
        self._client = client
        self._tokenizer = tokenizer
        self._seen = seen
        self._completer = Completer(self._ask)
        self._stopped = 0
        self._at = self._text.index("\n", len(self._text) // 2) + 1
        self._rest = self._text[self._at + 400 :]

    async def run(self, until: float) -> None:
        """Type until then."""
        pending: set[asyncio.Task[Any]] = set()
        while time.monotonic() < until and self._at < len(self._text) - len(self._rest) - 1:
            self._at += 1
            self._seen.num_keys += 1
            task = asyncio.ensure_future(
                self._completer.changed(self._text[: self._at], f"\n{self._rest}", language="python")
            )
            pending.add(task)
            task.add_done_callback(pending.discard)
            await asyncio.sleep(self._pause())
            shown = task.result() if task.done() else None
            if shown and self._text.startswith(shown, self._at) and self._rng.random() < ACCEPTED:
                self._at += len(self._completer.accept())
                self._seen.num_accepted += 1
        await asyncio.gather(*pending, return_exceptions=True)
        self._seen.num_cancelled += self._completer.counts.cancelled
        self._seen.num_before_work += self._completer.counts.cancelled - self._stopped

    def _pause(self) -> float:
        key = KEY_S * self._rng.lognormvariate(0, 0.5)
        if self._text[self._at - 1] == "\n":
            return key + self._rng.uniform(0.3, 1.5)
        return key + (self._rng.uniform(0, 0.3) if self._text[self._at - 1] == " " else 0)

    async def _ask(self, request: Request) -> str:
        """One completion, streamed."""
        wanted = self._text[self._at :].partition("\n")[0]
        tape = [*self._tokenizer.encode(wanted)[:40].tolist(), self._tokenizer.end_id]
        body = {
            "prefix": request.prefix, "suffix": request.suffix, "path": self._path.name, "max_tokens": 48,
            "stream": True, "editor_id": self._name, "temperature": 0,
        }  # fmt: skip
        began = time.perf_counter()
        text, first = "", None
        self._seen.num_asked += 1
        try:
            async with self._client.stream(
                "POST", "/v1/autocomplete", json=body, headers={"x-tape": json.dumps(tape)}
            ) as stream:
                async for line in stream.aiter_lines():
                    if not line.startswith("data: {"):
                        continue
                    told = json.loads(line[6:])
                    if "latency_ms" in told:
                        self._note(told, request, began, first)
                    elif "completion" in told:
                        first = first or time.perf_counter()
                        text += told["completion"]
        except asyncio.CancelledError:
            self._stopped += 1
            raise
        return text

    def _note(self, told: dict[str, Any], request: Request, began: float, first: float | None) -> None:
        seen, usage = self._seen, told["usage"]
        now = time.perf_counter()
        if first is not None:
            seen.first_ms.append(1000 * (first - began))
            seen.whole_ms.append(1000 * (now - began))
        seen.prepare_ms.append(told["latency_ms"]["prepare"])
        seen.prompt.append(usage["prompt_tokens"])
        seen.tokens.append(usage["completion_tokens"])
        seen.fresh.append(usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"])


async def play(url: str, editors: int, seconds: float) -> Seen:
    """All of them at once."""
    seen, tokenizer = Seen(), load_tokenizer("embedded")
    folder = Path(sysconfig.get_path("stdlib"))
    files = [path for path in sorted(folder.glob("*.py")) if 20_000 < path.stat().st_size < 60_000][:editors]
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        until = time.monotonic() + seconds
        typists = [Typist(number, path, client, tokenizer, seen) for number, path in enumerate(files)]
        await asyncio.gather(*(typist.run(until) for typist in typists))
    return seen


def measure(order: str, drafts: bool, asked: argparse.Namespace) -> dict[str, Any]:
    """A row."""
    settings = Settings(cost=Path("cpu-smollm2-135m")) if drafts else Settings(cost_ratio=1000.0)
    config = ServeConfig(fim_family=str(FAMILY), fim_order=order)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        flags = ("--max-model-len", "4096", "--max-num-seqs", str(asked.editors))
        with TapedServer.with_agspec(Path(folder) / "log", settings=settings, config=config, flags=flags) as server:
            asyncio.run(play(server.url, 2, 5))  # what is compiled and cached first is not timed
            seen = asyncio.run(play(server.url, asked.editors, asked.seconds))
            stats = server.stats()
    row: dict[str, Any] = {"order": order, "drafts": drafts, "editors": asked.editors, "seconds": asked.seconds}
    for name in ("first_ms", "whole_ms", "prepare_ms", "prompt", "fresh"):
        values = getattr(seen, name)
        row[name] = {f"p{p}": round(float(np.percentile(values, p)), 2) for p in (50, 95)} if values else None
    row |= {
        "num_keys": seen.num_keys, "num_asked": seen.num_asked, "num_whole": len(seen.whole_ms),
        "cached_share": round(1 - sum(seen.fresh) / max(1, sum(seen.prompt)), 4),
        "fresh_tokens_a_key": round(sum(seen.fresh) / max(1, seen.num_keys), 2),
        "cancelled_before_work_share": round(seen.num_before_work / max(1, seen.num_before_work + seen.num_asked), 4),
        "cancelled_share": round((seen.num_asked - len(seen.prompt)) / max(1, seen.num_asked), 4),
        "tokens_a_completion": round(sum(seen.tokens) / max(1, len(seen.tokens)), 2),
        "num_accepted_suggestions": seen.num_accepted,
        "accepted_drafted_tokens": stats["by_role"].get("fim", {}).get("num_accepted_tokens", 0),
        "errors": {**stats["errors"], **stats["api_errors"]},
    }  # fmt: skip
    return row


def show(row: dict[str, Any]) -> None:
    """One line."""
    told = ", ".join(f"{name} {row[name]['p50']:.0f} / {row[name]['p95']:.0f}" for name in ("first_ms", "whole_ms"))
    print(
        f"{row['order']}, drafts {'on ' if row['drafts'] else 'off'}: {told} (p50 / p95), ours"
        f" {row['prepare_ms']['p50']:.1f} / {row['prepare_ms']['p95']:.1f} ms; {row['num_keys']} keys,"
        f" {row['num_asked']} requests, {row['cancelled_before_work_share']:.0%} more given up in their pause,"
        f" {row['cancelled_share']:.0%} of those sent; {row['cached_share']:.1%} of prompt tokens cached,"
        f" {row['fresh_tokens_a_key']:.1f} prefilled a key; {row['accepted_drafted_tokens']} drafted tokens accepted",
        flush=True,
    )


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fim", description=__doc__)
    parser.add_argument("--editors", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = []
    for order in ("psm", "spm"):
        for drafts in (True, False):
            rows.append(measure(order, drafts, asked))
            if not asked.json:
                show(rows[-1])
    result = {"kind": "fim", "environment": environment(), "rows": rows}
    print(f"kept in {write_result('fim', result)}", file=sys.stderr)
    if asked.json:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
