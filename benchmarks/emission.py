"""What emission forms are worth where an agent edits: ``python -m benchmarks.emission [TRACES] [--families A,B]``.

Recorded sessions are replayed with files in the form in which they will be emitted, and with files as they were read
(no unescaping, no other form). Counted are the steps that begin in an edit's payload: the old and new text of an edit
call, a search block, a diff (regions, see scaffolds/). Mean accepted length: accepted drafted tokens a step.
``workspace alone``: no other store and no following of the request's own text, so that nothing else knows the file. The
result goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agspec.build import regions_of
from agspec.draft.names import REGION_NAMES
from agspec.draft.regions import walk
from agspec.replay.environment import environment
from agspec.replay.methods import Agspec, Step
from agspec.replay.plan import PlannedCall
from agspec.replay.simulate import replay
from agspec.settings import Settings
from agspec.tokens import Tokenizer, Tokens, load_tokenizer
from benchmarks.corpus import write_result
from benchmarks.table.families import Change, load_family, names

EDIT = REGION_NAMES.index("edit")
RATIO = 0.065
ALONE = Settings(cost_ratio=RATIO, stores=("workspace",), parts=("regions", "batch"))
WHOLE = Settings(cost_ratio=RATIO)


class Watching(Agspec):
    """Counts steps that begin in an edit, and the tokens accepted in them; one request at a time."""

    def __init__(self, settings: Settings, tokenizer: Tokenizer) -> None:
        super().__init__(settings, tokenizer)
        self._tables = regions_of(tokenizer).tables
        self._regions = np.zeros(0, np.int8)
        self._prompt = self._last = 0
        self.num_steps = self.num_accepted_tokens = self.num_edit_tokens = 0

    def start(self, request: str, call: PlannedCall) -> None:
        """See ``Method``."""
        super().start(request, call)
        self._regions = np.empty(call.tape.size, np.int8)
        walk(call.tape, self._tables, np.zeros(2, np.int64), self._regions)
        self._prompt = self._last = int(call.prompt.size)
        self.num_edit_tokens += int((self._regions == EDIT).sum())

    def propose(self, steps: Sequence[Step]) -> list[Tokens]:
        """See ``Method``."""
        (step,) = steps
        at = self._last - self._prompt
        if 0 < at < self._regions.size and self._regions[at] == EDIT:
            self.num_steps += 1
            self.num_accepted_tokens += step.num_new - 1
        self._last = int(step.sequence.size)
        return super().propose(steps)


def measured(name: str, folder: Path, tokenizer: Tokenizer, change: Change | None, settings: Settings) -> Watching:
    """One replay of a family."""
    method = Watching(settings, tokenizer)
    replay(method, load_family(name, folder, tokenizer, change).calls, max_draft=settings.max_draft)
    return method


def row(name: str, folder: Path, tokenizer: Tokenizer) -> dict[str, Any]:
    """What a family shows."""
    found: dict[str, Any] = {"family": name}
    for title, settings in (("workspace alone", ALONE), ("all stores", WHOLE)):
        lengths = []
        for change in (None, "raw form only"):
            method = measured(name, folder, tokenizer, change, settings)  # type: ignore[arg-type]
            lengths.append(method.num_accepted_tokens / method.num_steps if method.num_steps else 0.0)
            found["edit_tokens"] = method.num_edit_tokens
        with_forms, without = lengths
        found[title] = {
            "with_forms": round(with_forms, 3), "without": round(without, 3),
            "ratio": round(with_forms / without, 2) if without else None,
        }  # fmt: skip
    return found


def main() -> None:
    """Replay, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.emission", description=__doc__)
    parser.add_argument("traces", nargs="?", type=Path, default=Path("../shared/traces"))
    parser.add_argument("--tokenizer", help="tokenizer.json; default: Qwen2's, beside the traces")
    parser.add_argument("--families", default=",".join(names()))
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    place = asked.tokenizer or asked.traces.parent / "tokenizers" / "qwen2.tokenizer.json"
    tokenizer = load_tokenizer(place)
    rows = []
    for name in asked.families.split(","):
        rows.append(row(name, asked.traces, tokenizer))
        if not asked.json:
            alone, whole = rows[-1]["workspace alone"], rows[-1]["all stores"]
            print(
                f"{name:20} {rows[-1]['edit_tokens']:7} tokens of edits; accepted tokens a step, with forms / without:"
                f" workspace alone {alone['with_forms']} / {alone['without']} = {alone['ratio']},"
                f" all stores {whole['with_forms']} / {whole['without']} = {whole['ratio']}",
                flush=True,
            )
    result = {"kind": "emission", "environment": environment(), "rows": rows}
    write_result("emission", result)
    if asked.json:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
