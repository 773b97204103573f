"""``python -m benchmarks.receive [--tokens 20000] [--json]``: what reading a request costs before vLLM gets it.

A coding session's requests over all four APIs, up to ``--tokens`` long and growing turn by turn, are read by the hub as
``agspec serve`` does: recognised, linked to their session, opened files told from the rest. Milliseconds of one call;
tokenising files and the stores come after it, beside the prefill. The result goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from typing import Any

import numpy as np
import orjson

from agspec.replay.environment import environment
from agspec.scaffold import load_profiles
from agspec.serve.bodies import ROUTES
from agspec.serve.config import ServeConfig
from agspec.serve.hub import Hub
from agspec.tokens import load_tokenizer
from benchmarks.corpus import write_result

TURNS = 40
CHARACTERS_A_TOKEN = 3.6


def conversation(rng: random.Random, turns: int, size: int) -> list[dict[str, str]]:
    """A system message, then commands and what they printed, ``size`` characters a turn."""
    messages = [{"role": "system", "content": "You are a helpful assistant that can interact with a computer."}]
    for turn in range(turns):
        messages.append({"role": "assistant", "content": f"THOUGHT: next file.\n\n```bash\ncat -n part_{turn}.py\n```"})
        lines, number = "", 1
        while len(lines) < size:
            lines += f"{number:6}\tvalue_{rng.randrange(9999)} = compute(value_{rng.randrange(9999)}, {number})\n"
            number += 1
        messages.append({"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{lines}</output>"})
    return messages


def bodies(path: str, messages: list[dict[str, str]]) -> dict[str, Any]:
    """The same conversation, as each API says it."""
    if path == "/v1/completions":
        return {"model": "m", "prompt": "\n".join(message["content"] for message in messages)}
    if path == "/v1/responses":
        return {"model": "m", "input": messages}
    if path == "/v1/messages":
        return {"model": "m", "system": messages[0]["content"], "messages": messages[1:], "max_tokens": 10}
    return {"model": "m", "messages": messages}


async def measure(tokens: int) -> list[dict[str, Any]]:
    """A row for each API."""

    async def rpc(method: str, arguments: tuple[Any, ...]) -> list[Any]:
        return [None]

    tokenizer = load_tokenizer("embedded")
    rows = []
    for path in ROUTES:
        hub = Hub(
            ServeConfig(), profiles=load_profiles(), tokenizer=tokenizer, tool_wire="json", rpc=rpc,
            max_model_len=2 * tokens,
        )  # fmt: skip
        times = []
        for session in range(8):
            size = int(tokens * CHARACTERS_A_TOKEN / TURNS)
            messages = conversation(random.Random(session), TURNS, size)
            for turn in range(1, TURNS + 1):
                content = orjson.dumps(bodies(path, messages[: 2 * turn + 1]))
                started = time.perf_counter()
                exchange = hub.receive(path, {}, content)
                times.append((turn, 1000 * (time.perf_counter() - started)))
                assert exchange is not None
        late = [ms for turn, ms in times if turn > TURNS - 4]
        rows.append(
            {
                "path": path, "tokens": tokens, "num_requests": len(times),
                "ms_at_full_length": {f"p{q}": round(float(np.percentile(late, q)), 2) for q in (50, 99)},
                "ms_of_all": {f"p{q}": round(float(np.percentile([ms for _, ms in times], q)), 2) for q in (50, 99)},
            }
        )  # fmt: skip
    return rows


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.receive", description=__doc__)
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = asyncio.run(measure(asked.tokens))
    result = {"kind": "receive", "environment": environment(), "rows": rows}
    write_result("receive", result)
    if asked.json:
        print(json.dumps(result, indent=1))
        return
    for row in rows:
        full, every = row["ms_at_full_length"], row["ms_of_all"]
        print(
            f"{row['path']:22} {row['tokens']:,} tokens: p50 {full['p50']} p99 {full['p99']} ms;"
            f" all {row['num_requests']} requests of growing length: p50 {every['p50']} p99 {every['p99']} ms"
        )


if __name__ == "__main__":
    main()
