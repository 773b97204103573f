"""``python -m benchmarks.stress [TRACE...] [--sessions 64] [--minutes 10] [--json]``: many streaming sessions at once.

Sessions of recorded requests (the shipped ones, or TRACEs that ``agspec import`` made), each with a line of its own in
front, are played again and again against ``agspec serve embedded`` (float32, greedy). One client in ten leaves in the
middle of an answer. There must be no error; requests must end within 2 s after the last client has left; memory must
not grow beyond the stores' budgets after a fifth of the time; and a sample of answers must be what vLLM gives without
agspec. The result goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from agspec.replay.environment import environment
from agspec.replay.trace import Call, read_trace
from agspec.resources import data_dir
from agspec.serve.config import ServeConfig
from agspec.serve.process import Server
from agspec.settings import Settings
from benchmarks.corpus import write_result

FLAGS = ("--dtype", "float32", "--max-model-len", "2048", "--max-num-seqs", "16")
SETTINGS = Settings(session_mib=8, workspace_mib=32, shared_mib=32, max_sessions=96, strict=True)
LEAVING = 0.1
LONGEST = 900
"""Characters of a message; what is beyond is left out of its middle."""
MESSAGES = 6
SAMPLE = 24
GONE_S = 2.0
SETTLED_S = 30.0
ALIKE = 0.9
"""Of the sample's answers; in batches, sums in another order may turn a near tie."""

Messages = list[dict[str, str]]


@dataclass
class Seen:
    """What came of it."""

    counts: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    sample: list[tuple[Messages, str]] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)


def shortened(call: Call, mark: str) -> Messages:
    """A call's messages, short enough for a small machine: the first, the last few, each cut in its middle."""
    kept = [call.messages[0], *call.messages[1:][-MESSAGES:]]
    told = [{"role": m.role if m.role != "tool" else "user", "content": _cut(m.content)} for m in kept]
    first = next((i for i, message in enumerate(told) if message["role"] != "system"), 0)
    told[first]["content"] = f"{mark}\n{told[first]['content']}"
    return told


def _cut(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}\n...\n{text[-half:]}"


async def client(number: int, calls: Sequence[Call], url: str, until: float, tokens: int, seen: Seen) -> None:
    """One agent: its session's requests in order, from the start again when they are through."""
    rng = random.Random(number)
    turn = 0
    async with httpx.AsyncClient(base_url=url, timeout=600) as http:
        while time.monotonic() < until:
            turn += 1
            messages = shortened(calls[turn % len(calls)], f"Session {number}, round {turn // len(calls)}.")
            leaves = rng.random() < LEAVING
            body = {"model": "embedded", "messages": messages, "stream": True, "temperature": 0, "max_tokens": tokens}
            pieces: list[str] = []
            try:
                async with http.stream("POST", "/v1/chat/completions", json=body) as answer:
                    if answer.status_code != 200:
                        raise ValueError(f"status {answer.status_code}: {(await answer.aread())[:300]!r}")
                    async for line in answer.aiter_lines():
                        if line.startswith("data: {"):
                            choices = json.loads(line[6:])["choices"]
                            pieces += [choice["delta"].get("content") or "" for choice in choices]
                        if leaves and len(pieces) > 5:
                            break
            except (httpx.HTTPError, ValueError, KeyError) as error:
                seen.errors.append(f"session {number}, turn {turn}: {error!r:.300}")
                continue
            seen.counts["left" if leaves else "answered"] += 1
            if not leaves and rng.random() < 0.05 and len(seen.sample) < SAMPLE:
                seen.sample.append((messages, "".join(pieces)))


async def watch(server: Server, seen: Seen, started: float) -> None:
    """Memory, every few seconds."""
    while True:
        seen.memory.append((time.monotonic() - started, server.resident_bytes()))
        await asyncio.sleep(5)


async def play(server: Server, calls: Sequence[Sequence[Call]], asked: argparse.Namespace, seen: Seen) -> None:
    """All sessions, until the time is up."""
    started = time.monotonic()
    until = started + 60 * asked.minutes
    watching = asyncio.create_task(watch(server, seen, started))
    await asyncio.gather(
        *(client(i, calls[i % len(calls)], server.url, until, asked.tokens, seen) for i in range(asked.sessions))
    )
    watching.cancel()


def gone_s(server: Server) -> float:
    """Seconds until the engine runs nothing any more."""
    started = time.monotonic()
    while server.num_running():
        if time.monotonic() - started > 60:
            return 60.0
        time.sleep(0.05)
    return time.monotonic() - started


def settled(server: Server) -> dict[str, Any]:
    """Statistics when no output waits any more for word of whether it was taken; after SETTLED_S as they are."""
    until = time.monotonic() + SETTLED_S
    while (stats := server.stats())["num_parked"] and time.monotonic() < until:
        time.sleep(0.5)
    return stats


def alike(sample: Sequence[tuple[Messages, str]], tokens: int, folder: Path) -> float:
    """Share of the sample that vLLM without agspec answers the same."""
    with Server.without(folder / "plain.log", FLAGS) as plain:
        same = 0
        for messages, said in sample:
            body = {"model": "embedded", "messages": messages, "temperature": 0, "max_tokens": tokens}
            done = plain.client.post("/v1/chat/completions", json=body).raise_for_status().json()
            same += done["choices"][0]["message"]["content"] == said
    return same / len(sample) if sample else 0.0


def run(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Play, look, compare."""
    traces = asked.traces or sorted(data_dir("replays").glob("*.jsonl.gz"))
    sessions: dict[tuple[Path, str], list[Call]] = {}
    for path in traces:
        for call in read_trace(path).calls:
            if call.messages:
                sessions.setdefault((path, call.session), []).append(call)
    seen = Seen()
    with Server.with_agspec(folder / "log", settings=SETTINGS, config=ServeConfig(), flags=FLAGS) as server:
        asyncio.run(play(server, list(sessions.values()), asked, seen))
        idle_s = gone_s(server)
        stats = settled(server)
    budgets = SETTINGS.max_sessions * SETTINGS.session_mib + SETTINGS.workspace_mib + SETTINGS.shared_mib
    warm = next(size for at, size in seen.memory if at >= 60 * asked.minutes / 5)
    row = {
        "sessions": asked.sessions, "minutes": asked.minutes, **seen.counts, "errors": seen.errors[:10],
        "worker_errors": stats["errors"], "api_errors": stats["api_errors"], "idle_after_s": round(idle_s, 2),
        "warm_mib": warm >> 20, "most_mib": max(size for _, size in seen.memory) >> 20,
        "growth_mib": (seen.memory[-1][1] - warm) >> 20, "budget_mib": budgets,
        "num_draft_tokens": stats["num_draft_tokens"], "num_accepted_tokens": stats["num_accepted_tokens"],
        "num_parked": stats["num_parked"], "num_requests": stats["num_requests"], "links": stats["links"],
        "propose_ms_a_step": round(1000 * stats["propose"]["seconds"] / max(1, stats["propose"]["num_steps"]), 3),
        "sample": len(seen.sample), "alike": round(alike(seen.sample, asked.tokens, folder), 3),
    }  # fmt: skip
    wrong = {
        "errors": bool(seen.errors or stats["errors"] or stats["api_errors"]),
        "requests run on": idle_s > GONE_S,
        "memory grew beyond the budgets": row["growth_mib"] > budgets,
        "answers differ": row["alike"] < ALIKE,
        "half outputs wait": bool(stats["num_parked"]),
    }
    return {**row, "wrong": [what for what, is_so in wrong.items() if is_so]}


def main() -> None:
    """Run, print, keep; exit code 1 when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stress", description=__doc__)
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--sessions", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--tokens", type=int, default=48, help="of each answer")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agspec-stress-") as folder:
        row = run(asked, Path(folder))
        if row["wrong"]:
            print((Path(folder) / "log").read_text()[-4000:], file=sys.stderr)
    result = {"kind": "stress", "environment": environment(), "row": row}
    print(f"kept in {write_result('stress', result)}", file=sys.stderr)
    print(json.dumps(result if asked.json else row, indent=1))
    if row["wrong"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
