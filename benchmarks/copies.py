"""What copy programs gain on a real engine: ``python -m benchmarks.copies EDITS [--sizes 500,1000,3000] [--batch 1]``.

EDITS: recorded edits, gzip JSONL of path, before, after. Of each size the files whose result is nearest to it in tokens
are written three ways, along oracle tapes: whole and undrafted, whole with agspec's drafts (lossless), and as the
cheapest copy program under its grammar, spliced, with drafts. Each way is prompted as /v1/edits prompts it; seconds
from the first token to the last, and from the request to the last. Interleaved, way by way, cold stores and prefix
cache each. Only the sampled token is forced; each forward pass is real. The result goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agspec.build import step_cost
from agspec.copyedit.ceiling import Case
from agspec.copyedit.compile import Cost, compile_edit
from agspec.copyedit.machine import Machine
from agspec.copyedit.program import Gen, parse, show
from agspec.copyedit.resolve import resolve, written
from agspec.copyedit.source import Source
from agspec.copyedit.token_machine import TokenMachine, Vocabulary
from agspec.costfile import read_cost
from agspec.draft.cost import StepCost
from agspec.engine.config import ROLE, SESSION, TENANT
from agspec.engine.copies.edits import SCHEDULER, Edits
from agspec.engine.copies.request import CopyRequest
from agspec.engine.launcher import SWITCH, make_llm
from agspec.engine.phase import run_phase
from agspec.replay.edits import read_cases
from agspec.replay.environment import environment
from agspec.serve.edits.body import EditBody
from agspec.serve.edits.choose import Choice
from agspec.serve.edits.prompt import messages, tokens_of
from agspec.settings import Settings
from agspec.tokens import Tokenizer, load_tokenizer
from benchmarks.corpus import write_result
from benchmarks.edits import Edit, read_edits

WAYS = ("whole", "whole, drafted", "program")
CONTEXT = 8192
ANCHORS = 10
"""Lines of which one has its number, in the variant."""
FITTING = 0.36
"""Share of the context that a result may have: numbered source and result must fit."""
LONGEST = 1 << 17
"""Characters of a file."""


def nearest(edits: Sequence[Edit], size: int, number: int, tokenizer: Tokenizer) -> list[Edit]:
    """The edits whose result is nearest to ``size`` tokens, and whose source and result fit the context."""
    sized = [(int(tokenizer.encode(edit.after).size), edit) for edit in edits]
    fitting = [(abs(tokens - size), i) for i, (tokens, _) in enumerate(sized) if tokens < FITTING * CONTEXT]
    return [sized[i][1] for _, i in sorted(fitting)[:number]]


class Writer:
    """One engine, and edits to write on it."""

    def __init__(self, model: str, settings: Settings, batch: int) -> None:
        self.tokenizer = load_tokenizer(model)
        self.vocabulary = Vocabulary(self.tokenizer)
        self.llm = make_llm(
            model, settings=settings, proposer=SWITCH, max_model_len=CONTEXT, max_num_seqs=batch,
            scheduler_cls=SCHEDULER, async_scheduling=False,
        )  # fmt: skip
        self.edits = Edits(self.llm, self.vocabulary.end)
        self.chat = self.llm.get_tokenizer()
        self.choice = Choice(step_cost(settings), settings.max_draft)

    def prompt(self, edit: Edit, way: str, *, every: int = 1) -> list[int]:
        """As /v1/edits asks for the file."""
        body = EditBody.model_validate({
            "model": "m", "instruction": "Make the change.", "files": [{"path": edit.path, "text": edit.before}]
        })  # fmt: skip
        told = messages(body, body.files[0], "copy" if way == "program" else "whole", every=every)
        return tokens_of(self.chat, told)

    def told(self, edit: Edit) -> dict[str, Any]:
        """Tokens of the result and of the prompts, and the way that ``auto`` chooses."""
        prompts = {way: len(self.prompt(edit, way)) for way in WAYS[1:]}
        whole, numbered = (prompts[way] for way in WAYS[1:])
        size = int(self.tokenizer.encode(edit.before).size)
        return {
            "tokens": int(self.tokenizer.encode(edit.after).size), "prompt": whole, "numbered": numbered,
            "anchored": len(self.prompt(edit, "program", every=ANCHORS)),
            "auto": "program" if self.choice.way(size, numbering=numbered - whole) == "copy" else WAYS[1],
        }  # fmt: skip

    def tape(self, edit: Edit, way: str) -> list[int]:
        """What is to be written; the same bytes each way."""
        sources = [Source(edit.before.encode())] if way == "program" else []
        machine = TokenMachine(Machine(sources, spans=False), self.vocabulary)
        cost = Cost(text=lambda text: float(len(self.vocabulary.encode(text))))
        return machine.tokens_of(show(compile_edit(sources, edit.after.encode(), cost=cost)))

    def write(self, edits: Sequence[Edit], way: str) -> dict[str, float]:
        """All of them at once, cold."""
        self.llm.reset_prefix_cache()
        self.llm.collective_rpc("agspec_switch", args=("none" if way == "whole" else "agspec",))
        asked = []
        for edit in edits:
            tape = self.tape(edit, way)
            sources = (edit.before,) if way == "program" else ()
            asked.append((self.prompt(edit, way), CopyRequest(sources=sources, max_tokens=len(tape), tape=tuple(tape))))
        started = time.perf_counter()
        begun = []
        for number, (prompt, request) in enumerate(asked):
            who = {SESSION: f"s{number}", TENANT: "t", ROLE: "editor"}
            begun.append(self.edits.start(f"e{number}", prompt, request, extra_args=who))
        self.edits.run()
        programs = []
        for edit, done in zip(edits, begun, strict=True):
            source = Source(edit.before.encode())
            program = parse(self.vocabulary.bytes_of(done.tokens))
            if not done.done or resolve(program, [source]) != edit.after.encode():
                raise SystemExit(f"{edit.path}: want the recorded result, got another text")
            copies = (written(one, [source]) for one in program if not isinstance(one, Gen))
            programs.append([self.vocabulary.encode(text) for text in copies])
        first = min(done.times[0] for done in begun)
        last = max(done.times[-1] for done in begun)
        spliced = sum(len(text) for data in programs for text in data)
        return {
            "decode_s": last - first, "total_s": last - started, "num_steps": sum(d.num_steps for d in begun),
            "num_tokens": sum(len(d.tokens) for d in begun), "num_prompt_tokens": sum(len(p) for p, _ in asked),
            "num_splices": sum(d.num_splices for d in begun), "num_spliced_tokens": spliced,
        }  # fmt: skip


def measure(options: dict[str, Any]) -> list[dict[str, Any]]:
    """A row a size: medians over its files (batch 1) or the one group of them."""
    edits = read_edits(Path(options["edits"]), most_characters=LONGEST) if options["edits"] else []
    writer = Writer(options["model"], Settings(cost=options["cost"]), options["batch"])
    number = max(options["number"], options["batch"])
    groups = [(f"{size} tokens", nearest(edits, size, number, writer.tokenizer)) for size in options["sizes"]]
    if options["stubs"]:
        cases = read_cases(Path(options["stubs"]))
        groups = [(f"{size} stubs", stubs(cases, size, number)) for size in options["num_stubs"]]
    return [_row(writer, label, found, options) for label, found in groups]


def _row(writer: Writer, label: str, found: Sequence[Edit], options: dict[str, Any]) -> dict[str, Any]:
    batch = options["batch"]
    groups = [found[:batch]] if batch > 1 else [[edit] for edit in found]
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for i, group in enumerate(groups):
        for j in range(len(WAYS)):
            way = WAYS[(i + j) % len(WAYS)]
            runs[way].append(writer.write(group, way))
    row: dict[str, Any] = {"size": label, "batch": batch, "num_files": len(found)}
    row["files"] = [writer.told(edit) for edit in found]
    for way in WAYS:
        row[way] = {key: round(statistics.median(run[key] for run in runs[way]), 3) for key in runs[way][0]}
        for key in ("decode_s", "total_s"):
            ratios = [a[key] / b[key] for a, b in zip(runs["whole"], runs[way], strict=True)]
            row[way][f"faster_{key[:-2]}"] = round(statistics.median(ratios), 2)
    if batch == 1:
        row["projected"] = {name: projected(row, read_cost(name)) for name in options["projected"]}
    auto = [file["auto"] for file in row["files"]]
    row["auto_over_whole"] = round(statistics.median(
        runs["whole, drafted"][i]["total_s"] / runs[auto[i]][i]["total_s"] for i in range(len(groups))
    ), 3)  # fmt: skip
    _show(row, auto)
    return row


def projected(row: dict[str, Any], cost: StepCost) -> dict[str, float]:
    """How many times faster than plain decoding each way would be with these steps' costs, prompts included.

    Drafted steps are taken to verify the longest draft; a prompt and a splice are steps of that many tokens.
    """
    draft = Settings().max_draft
    times = {}
    for way in WAYS:
        found = row[way]
        steps = found["num_steps"] * cost.step(1, 0 if way == "whole" else draft)
        splices = found["num_splices"]
        copies = splices * cost.step(1, found["num_spliced_tokens"] / splices) if splices else 0.0
        times[way] = cost.step(1, found["num_prompt_tokens"]) + steps + copies
    return {way: round(times["whole"] / times[way], 2) for way in WAYS[1:]}


def stubs(cases: Sequence[Case], size: int, number: int) -> list[Edit]:
    """Files of ``size`` functions without bodies, to be filled: next to nothing can be copied."""
    found = []
    for first in range(0, size * number, size):
        part = cases[first : first + size]
        heads = [case.before.splitlines(keepends=True) for case in part]
        before = "\n\n".join("".join(line for line in head if not line.startswith(" ")) + "    ...\n" for head in heads)
        found.append(Edit("stubs.py", before, "\n\n".join(case.after for case in part)))
    return found


def _show(row: dict[str, Any], auto: Sequence[str]) -> None:
    shown = ", ".join(
        f"{way} {found['decode_s']:.1f} s ({found['faster_decode']:.1f}x, {found['faster_total']:.1f}x with its "
        f"prompt; {found['num_steps']:.0f} steps)"
        for way, found in ((way, row[way]) for way in WAYS)
    )
    print(f"{row['size']}, batch {row['batch']}, {row['num_files']} files: {shown}", file=sys.stderr)
    files = row["files"]
    numbers, anchors = (
        statistics.median(file[key] / file["prompt"] - 1 for file in files) for key in ("numbered", "anchored")
    )
    print(
        f"  auto: {', '.join(auto)} ({row['auto_over_whole']:.2f}x whole, drafted); prompt tokens: numbers "
        f"+{numbers:.0%}, one in {ANCHORS} +{anchors:.0%}; projected: "
        + "; ".join(f"{name} {told}" for name, told in row.get("projected", {}).items()),
        file=sys.stderr, flush=True,
    )  # fmt: skip


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.copies", description=__doc__)
    parser.add_argument("edits", type=Path, nargs="?")
    parser.add_argument("--stubs", type=Path, help="HumanEvalPack: files of functions to be filled, instead of edits")
    parser.add_argument("--num-stubs", default="4,24", help="functions in each of these files, comma between them")
    parser.add_argument("--projected", default="h100-7b,rtx4090-7b", help="cost profiles to project batch 1 to")
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--sizes", default="500,1000,3000", help="tokens of the result, comma between them")
    parser.add_argument("--number", type=int, default=3, help="files of each size")
    parser.add_argument("--batch", default="1", help="edits at a time, comma between them")
    parser.add_argument("--cost", default="cpu-smollm2-135m", help="cost profile of the drafts")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if (asked.edits is None) == (asked.stubs is None):
        parser.error("want EDITS or --stubs")
    rows = []
    for batch in map(int, asked.batch.split(",")):
        options = {
            "edits": asked.edits and str(asked.edits), "stubs": asked.stubs and str(asked.stubs),
            "model": asked.model, "batch": batch, "number": asked.number, "cost": asked.cost,
            "sizes": [int(size) for size in asked.sizes.split(",")], "projected": asked.projected.split(","),
            "num_stubs": [int(size) for size in asked.num_stubs.split(",")],
        }  # fmt: skip
        rows += run_phase(measure, options)
    result = {"kind": "copies", "environment": environment(), "rows": rows}
    print(f"kept in {write_result('copies', result)}", file=sys.stderr)
    if asked.json:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
