"""A session that never ends: ``python -m benchmarks.longsession [TRACES] [--family NAME] [--json]``.

All calls of a family are replayed as one session, and each in its own: every 10,000 output tokens a row with accepted
tokens a step in both, and the median time of a proposal in the long one. Teacher-forced; the counts are the same each
time, the times need an idle machine. The result goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from agspec.replay.environment import environment
from agspec.replay.methods import Agspec
from agspec.replay.simulate import replay
from agspec.settings import Settings
from agspec.tokens import load_tokenizer
from benchmarks.corpus import write_result
from benchmarks.table.families import Family, load_family

EVERY = 10_000
SETTINGS = Settings(cost_ratio=0.065)


def measure(family: Family, tokenizer: Any) -> dict[str, Any]:
    """Rows, and how much text the long session's store holds at the end."""
    ways: list[list[Counter[str]]] = []
    times: list[float] = []
    held = 0
    for long in (False, True):
        calls = [replace(call, session="long") if long else call for call in family.calls]
        method, by_call = Agspec(SETTINGS, tokenizer), list[Counter[str]]()
        times = replay(method, calls, max_draft=SETTINGS.max_draft, by_call=by_call).propose_us
        ways.append(by_call)
        stores = [session.store.lookup for session in method.drafter.homes.sessions.values()]
        held = max(store.num_tokens for store in stores if store is not None)
    rows: list[dict[str, Any]] = []
    start = done = 0
    step = 0
    for i in range(len(family.calls)):
        done += ways[0][i]["num_tokens"]
        if done < EVERY and i + 1 < len(family.calls):
            continue
        apart, together = (sum(way[start : i + 1], Counter()) for way in ways)
        steps = together["num_steps"]
        rows.append(
            {
                "calls": i + 1 - start,
                "num_tokens": done,
                "apart": round(apart["num_accepted_tokens"] / apart["num_steps"], 4),
                "long": round(together["num_accepted_tokens"] / steps, 4),
                "propose_us_p50": round(float(np.median(times[step : step + steps])), 1),
            }
        )
        start, done, step = i + 1, 0, step + steps
    return {"family": family.name, "num_calls": len(family.calls), "num_session_tokens": held, "rows": rows}


def main() -> None:
    """Replay, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.longsession", description=__doc__)
    parser.add_argument("traces", nargs="?", type=Path, default=Path("../shared/traces"))
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json; default: Qwen2's, beside the traces")
    parser.add_argument("--family", default="aider-edits")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    tokenizer = load_tokenizer(asked.tokenizer or asked.traces.parent / "tokenizers" / "qwen2.tokenizer.json")
    result = {
        "kind": "longsession", "environment": environment(),
        **measure(load_family(asked.family, asked.traces, tokenizer), tokenizer),
    }  # fmt: skip
    write_result("longsession", result)
    if asked.json:
        print(json.dumps(result, indent=1))
        return
    print(f"{result['family']}: {result['num_calls']} calls, {result['num_session_tokens']:,} tokens in the session")
    print("output tokens  accepted a step: long session, apart  propose p50 us")
    for row in result["rows"]:
        print(f"{row['num_tokens']:13,}  {row['long']:28.3f}  {row['apart']:5.3f}  {row['propose_us_p50']:14.0f}")


if __name__ == "__main__":
    main()
