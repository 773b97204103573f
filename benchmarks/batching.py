"""What spending a step's draft over the whole batch is worth: ``python -m benchmarks.batching [TRACES] [--batch N]``.

Recorded sessions are replayed N at a time under cost profiles, twice: tokens bought over all rows together, and each
row drafting what pays by itself. Uncalibrated, cold, teacher-forced: repeated, the counts are the same. The result goes
to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from agspec.draft.names import PART_NAMES
from agspec.errors import AgspecError
from agspec.replay.costs import NamedCost
from agspec.replay.environment import environment
from agspec.replay.methods import METHODS
from agspec.replay.simulate import NoDraft, replay
from agspec.settings import Settings
from agspec.tokens import Tokenizer, load_tokenizer
from benchmarks.corpus import write_result
from benchmarks.table.ablations import unused
from benchmarks.table.families import Family, load_family

FAMILIES = "mini-swe-agent json,aider,aider-edits,swe-agent raw"
COSTS = "cpu-smollm2-135m,h100-7b,rtx4090-7b"


def row(family: Family, cost: NamedCost, batch: int, tokenizer: Tokenizer) -> dict[str, Any]:
    """One family under one profile."""
    calls = family.calls
    none = replay(NoDraft(), calls, max_draft=1, batch=batch)
    found: dict[str, Any] = {"family": family.name, **cost.names, "batch": batch}
    speedups = []
    for title, values in (("together", {"parts": PART_NAMES}), ("row by row", unused("batch"))):
        settings = cost.tell(Settings(**values))
        tally = replay(METHODS["agspec"](settings, tokenizer), calls, max_draft=settings.max_draft, batch=batch)
        speedups.append(tally.speedup(cost.steps, none))
        found[title] = {
            "speedup": round(speedups[-1], 4), "num_draft_tokens": tally.num_draft_tokens,
            "num_accepted_tokens": tally.num_accepted_tokens,
        }  # fmt: skip
    found["worth"] = round(speedups[0] / speedups[1] - 1, 4)
    return found


def main() -> None:
    """Replay, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batching", description=__doc__)
    parser.add_argument("traces", nargs="?", type=Path, default=Path("../shared/traces"))
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json; default: Qwen2's, beside the traces")
    parser.add_argument("--families", default=FAMILIES, help="comma between them")
    parser.add_argument("--costs", default=COSTS, help="cost profiles, comma between them")
    parser.add_argument("--batch", type=int, default=16, help="sessions at a time")
    parser.add_argument("--json", action="store_true", help="data as JSON on stdout")
    asked = parser.parse_args()
    place = asked.tokenizer or asked.traces.parent / "tokenizers" / "qwen2.tokenizer.json"
    rows = []
    try:
        tokenizer = load_tokenizer(place)
        costs = [NamedCost.of_profile(name) for name in asked.costs.split(",")]
        for name in asked.families.split(","):
            family = load_family(name, asked.traces, tokenizer)
            for cost in costs:
                rows.append(row(family, cost, asked.batch, tokenizer))
                told = rows[-1]
                print(
                    f"{name:20} {told['cost']:18} batch {asked.batch}: together {told['together']['speedup']:.3f}, "
                    f"row by row {told['row by row']['speedup']:.3f}, worth {told['worth']:+.1%}",
                    file=sys.stderr, flush=True,
                )  # fmt: skip
    except AgspecError as error:
        raise SystemExit(str(error)) from error
    result = {"kind": "batching", "environment": environment(), "rows": rows}
    print(f"kept in {write_result('batching', result)}", file=sys.stderr)
    if asked.json:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
