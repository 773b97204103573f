"""What emission forms are worth where an agent edits: ``python -m benchmarks.emission [TRACES] [--families A,B]``.

Replayed with files in the form in which they will be emitted, and with files as they were read (no unescaping, no other
form): recorded sessions, where the steps count that begin in an edit's payload (regions, see scaffolds/), and recorded
edits (``--edits``) written in the formats of several agents, where those count that begin in text copied from the file.
Mean accepted length: accepted drafted tokens a step.
``workspace alone``: no other store and no following of the request's own text, so that nothing else knows the file. The
result goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agspec.build import regions_of
from agspec.draft.names import REGION_NAMES
from agspec.draft.regions import walk
from agspec.replay.environment import environment
from agspec.replay.methods import Agspec, Step
from agspec.replay.plan import PlannedCall
from agspec.replay.simulate import replay
from agspec.scaffold import load_profiles
from agspec.settings import Settings
from agspec.tokens import Tokenizer, Tokens, load_tokenizer
from benchmarks.corpus import write_result
from benchmarks.edits import FORMATS, Edit, planned, read_edits
from benchmarks.table.families import Change, load_family, names, raw_only

EDIT = REGION_NAMES.index("edit")
RATIO = 0.065
ALONE = Settings(cost_ratio=RATIO, stores=("workspace",), parts=("regions", "batch"))
WHOLE = Settings(cost_ratio=RATIO)


Marks = Callable[[PlannedCall], npt.NDArray[np.bool_]]
"""Which tokens of a call's tape count."""


class Watching(Agspec):
    """Counts steps that begin at a marked token, and the tokens accepted in them; one request at a time."""

    def __init__(self, settings: Settings, tokenizer: Tokenizer, marks: Marks) -> None:
        super().__init__(settings, tokenizer)
        self._marks = marks
        self._marked = np.zeros(0, np.bool_)
        self._prompt = self._last = 0
        self.num_steps = self.num_accepted_tokens = self.num_marked_tokens = 0

    def start(self, request: str, call: PlannedCall) -> None:
        """See ``Method``."""
        super().start(request, call)
        self._marked = self._marks(call)
        self._prompt = self._last = int(call.prompt.size)
        self.num_marked_tokens += int(self._marked.sum())

    def propose(self, steps: Sequence[Step]) -> list[Tokens]:
        """See ``Method``."""
        (step,) = steps
        at = self._last - self._prompt
        if 0 < at < self._marked.size and self._marked[at]:
            self.num_steps += 1
            self.num_accepted_tokens += step.num_new - 1
        self._last = int(step.sequence.size)
        return super().propose(steps)


def in_edits(tokenizer: Tokenizer) -> Marks:
    """Tokens in the payload of an edit, by the regions of the profiles."""
    tables = regions_of(tokenizer).tables

    def marks(call: PlannedCall) -> npt.NDArray[np.bool_]:
        regions = np.empty(call.tape.size, np.int8)
        walk(call.tape, tables, np.zeros(2, np.int64), regions)
        return regions == EDIT

    return marks


Replayed = tuple[Sequence[PlannedCall], Marks]


def recorded(name: str, folder: Path, tokenizer: Tokenizer, change: Change | None) -> Replayed:
    """A family's sessions."""
    return load_family(name, folder, tokenizer, change).calls, in_edits(tokenizer)


def written(edits: Sequence[Edit], name: str, tokenizer: Tokenizer, change: Change | None) -> Replayed:
    """Edits in an agent's format."""
    profiles = load_profiles() if change is None else raw_only(load_profiles())
    found = planned(edits, FORMATS[name], tokenizer, profiles)
    marked = {id(call): marks for call, marks in found}
    return [call for call, _ in found], lambda call: marked[id(call)]


def row(name: str, load: Callable[[Change | None], Replayed], tokenizer: Tokenizer) -> dict[str, Any]:
    """What a family or format shows."""
    found: dict[str, Any] = {"family": name, "workspace alone": {}, "all stores": {}}
    for key, change in (("with_forms", None), ("without", "raw form only")):
        calls, marks = load(change)  # type: ignore[arg-type]
        for title, settings in (("workspace alone", ALONE), ("all stores", WHOLE)):
            method = Watching(settings, tokenizer, marks)
            replay(method, calls, max_draft=settings.max_draft)
            length = method.num_accepted_tokens / method.num_steps if method.num_steps else 0.0
            found[title][key] = round(length, 3)
            found["edit_tokens"] = method.num_marked_tokens
    for title in ("workspace alone", "all stores"):
        with_forms, without = found[title].values()
        found[title]["ratio"] = round(with_forms / without, 2) if without else None
    return found


def main() -> None:
    """Replay, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.emission", description=__doc__)
    parser.add_argument("traces", nargs="?", type=Path, default=Path("../shared/traces"))
    parser.add_argument("--tokenizer", help="tokenizer.json; default: Qwen2's, beside the traces")
    parser.add_argument("--families", default=",".join(names()))
    parser.add_argument("--edits", type=Path, help="recorded edits, gzip JSONL of path, before, after")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    place = asked.tokenizer or asked.traces.parent / "tokenizers" / "qwen2.tokenizer.json"
    tokenizer = load_tokenizer(place)
    loads: dict[str, Callable[[Change | None], Replayed]] = {
        name: partial(recorded, name, asked.traces, tokenizer) for name in filter(None, asked.families.split(","))
    }
    if asked.edits is not None:
        edits = read_edits(asked.edits)
        loads.update({name: partial(written, edits, name, tokenizer) for name in FORMATS})
    rows = []
    for name, load in loads.items():
        rows.append(row(name, load, tokenizer))
        if not asked.json:
            alone, whole = rows[-1]["workspace alone"], rows[-1]["all stores"]
            print(
                f"{name:28} {rows[-1]['edit_tokens']:7} tokens of edits; accepted tokens a step, with forms / without:"
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
