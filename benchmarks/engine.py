"""agspec against suffix on the real engine, and what the simulator foretold: ``python -m benchmarks.engine TRACE...``.

Each trace file is a family of its own. Every method replays the same sessions, forced along the recording, at each
batch size, interleaved; agspec is told the cost profile. Printed: decode speed over ``suffix`` and over ``none`` with
95% intervals, and how far the modelled ratio (``agspec simulate --cost PROFILE --batch N``) is from the measured one.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from agspec.commands.options import read_traces
from agspec.engine.bench import Job, Tenants, bench, plan_tenants
from agspec.replay.costs import NamedCost
from agspec.replay.environment import environment
from agspec.replay.methods import METHODS
from agspec.replay.plan import Planner
from agspec.replay.simulate import replay
from agspec.settings import Settings
from agspec.tokens import load_tokenizer
from benchmarks.corpus import write_result

COMPARED = ("none", "suffix", "agspec")


def foretold(tenants: Tenants, settings: Settings, batch: int, context: int) -> dict[str, float]:
    """Modelled time of each method, ms."""
    cost = NamedCost.of_profile(str(settings.cost))
    calls = [call for _, sessions in tenants for session in sessions for call in session]
    tokenizer = load_tokenizer("embedded")
    return {
        name: replay(
            METHODS[name](settings, tokenizer), calls, max_draft=settings.max_draft, batch=batch,
            context_limit=context,
        ).time(cost.steps)
        for name in COMPARED
    }  # fmt: skip


def family(name: str, tenants: Tenants, asked: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each batch size."""
    settings = Settings(cost=Path(asked.cost), caps=asked.caps, max_draft=24)
    batches = tuple(int(batch) for batch in asked.batch.split(","))
    job = Job(
        model="embedded", methods=tuple(asked.methods.split(",")), batches=batches, repeats=asked.repeats,
        dtype="bfloat16", max_model_len=asked.context, settings=settings,
    )  # fmt: skip
    rows = []
    for row in bench(job, tenants)["rows"]:
        if row["method"] != "agspec":
            continue
        if not row["tape_followed"]:
            raise SystemExit(f"{name}, batch {row['batch']}: the engine left the recording")
        times = foretold(tenants, settings, row["batch"], asked.context)
        rows.append(
            {
                "family": name, "batch": row["batch"], "repeats": row["repeats"],
                "over_suffix": row["ratio_to_suffix"], "over_none": row["ratio_to_none"],
                "over_async": row["ratio_to_async"], "mean_acceptance_length": row["mean_acceptance_length"],
                "foretold_over_suffix": times["suffix"] / times["agspec"],
                "foretold_over_none": times["none"] / times["agspec"],
            }
        )  # fmt: skip
    return rows


def main() -> None:
    """Run, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--batch", default="1,4,16")
    parser.add_argument("--methods", default="none,suffix,agspec")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-calls", type=int, default=2)
    parser.add_argument("--max-tokens", type=int, default=100)
    parser.add_argument("--sessions", type=int, default=16)
    parser.add_argument("--context", type=int, default=4096, help="tokens that prompt and output may have together")
    parser.add_argument("--cost", default="cpu-smollm2-135m", help="cost profile: file or shipped name")
    parser.add_argument("--caps", type=Path, help="what agspec calibrate made of other sessions")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    planner = Planner(
        load_tokenizer("embedded"), "json", max_tokens=asked.max_tokens, context_limit=asked.context - 1
    )  # fmt: skip
    rows = []
    for trace in read_traces(asked.traces):
        planned = [(trace.name, list(planner.calls(trace)))]
        rows += family(
            trace.name, plan_tenants(planned, max_calls=asked.max_calls, sessions=asked.sessions), asked
        )  # fmt: skip
    told = {key: str(value) for key, value in vars(asked).items()}
    result = {"kind": "engine", "settings": told, "environment": environment(), "rows": rows}
    print(f"kept in {write_result('engine', result)}", file=sys.stderr)
    if asked.json:
        print(json.dumps(result, indent=1))
        return
    for row in rows:
        measured, told = row["over_suffix"]["median"], row["foretold_over_suffix"]
        print(
            f"{row['family']:14} batch {row['batch']:2}: {_shown(row['over_suffix'])} x suffix"
            f" (foretold {told:.2f}, {told / measured - 1:+.0%}), {_shown(row['over_none'])} x none"
            f" (foretold {row['foretold_over_none']:.2f})"
        )
    ratios = [row["over_suffix"]["median"] for row in rows]
    print(f"geometric mean over suffix: {float(np.exp(np.mean(np.log(ratios)))):.3f}")


def _shown(ratio: dict[str, Any]) -> str:
    low, high = ratio["interval"]
    return f"{ratio['median']:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
