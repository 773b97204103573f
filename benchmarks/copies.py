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

from agspec.copyedit.compile import Cost, compile_edit
from agspec.copyedit.machine import Machine
from agspec.copyedit.program import parse, show
from agspec.copyedit.resolve import resolve
from agspec.copyedit.source import Source
from agspec.copyedit.token_machine import TokenMachine, Vocabulary
from agspec.engine.config import ROLE, SESSION, TENANT
from agspec.engine.copies.edits import SCHEDULER, Edits
from agspec.engine.copies.request import CopyRequest
from agspec.engine.launcher import SWITCH, make_llm
from agspec.engine.phase import run_phase
from agspec.replay.environment import environment
from agspec.settings import Settings
from agspec.tokens import Tokenizer, load_tokenizer
from benchmarks.corpus import write_result
from benchmarks.edits import Edit, read_edits

WAYS = ("whole", "whole, drafted", "program")
CONTEXT = 8192
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

    def prompt(self, edit: Edit, way: str) -> list[int]:
        """As /v1/edits asks for the file."""
        from agspec.serve.edits.body import EditBody
        from agspec.serve.edits.prompt import messages, tokens_of

        body = EditBody.model_validate({
            "model": "m", "instruction": "Make the change.", "files": [{"path": edit.path, "text": edit.before}]
        })  # fmt: skip
        told = messages(body, body.files[0], "copy" if way == "program" else "whole")
        return tokens_of(self.chat, told)

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
        for edit, done in zip(edits, begun, strict=True):
            data = self.vocabulary.bytes_of(done.tokens)
            text = resolve(parse(data), [Source(edit.before.encode())])
            if not done.done or text != edit.after.encode():
                raise SystemExit(f"{edit.path}: want the recorded result, got another text")
        first = min(done.first or 0.0 for done in begun)
        last = max(done.last for done in begun)
        return {"decode_s": last - first, "total_s": last - started, "num_steps": sum(d.num_steps for d in begun),
                "num_tokens": sum(len(d.tokens) for d in begun)}  # fmt: skip


def measure(options: dict[str, Any]) -> list[dict[str, Any]]:
    """A row a size: medians over its files (batch 1) or the one group of them."""
    edits = read_edits(Path(options["edits"]), most_characters=LONGEST)
    writer = Writer(options["model"], Settings(cost=options["cost"]), options["batch"])
    rows = []
    for size in options["sizes"]:
        found = nearest(edits, size, max(options["number"], options["batch"]), writer.tokenizer)
        groups = [found[: options["batch"]]] if options["batch"] > 1 else [[edit] for edit in found]
        runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        for i, group in enumerate(groups):
            for j in range(len(WAYS)):
                way = WAYS[(i + j) % len(WAYS)]
                runs[way].append(writer.write(group, way))
        row: dict[str, Any] = {"size": size, "batch": options["batch"], "num_files": len(found)}
        row["tokens"] = [int(writer.tokenizer.encode(edit.after).size) for edit in found]
        for way in WAYS:
            row[way] = {key: round(statistics.median(run[key] for run in runs[way]), 3) for key in runs[way][0]}
            for key in ("decode_s", "total_s"):
                ratios = [a[key] / b[key] for a, b in zip(runs["whole"], runs[way], strict=True)]
                row[way][f"faster_{key[:-2]}"] = round(statistics.median(ratios), 2)
        rows.append(row)
        shown = ", ".join(
            f"{way} {found['decode_s']:.1f} s ({found['faster_decode']:.1f}x, {found['faster_total']:.1f}x with its "
            f"prompt; {found['num_steps']:.0f} steps)"
            for way, found in ((way, row[way]) for way in WAYS)
        )
        print(
            f"{size} tokens, batch {options['batch']}, {row['num_files']} files: {shown}", file=sys.stderr, flush=True
        )
    return rows


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.copies", description=__doc__)
    parser.add_argument("edits", type=Path)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--sizes", default="500,1000,3000", help="tokens of the result, comma between them")
    parser.add_argument("--number", type=int, default=3, help="files of each size")
    parser.add_argument("--batch", default="1", help="edits at a time, comma between them")
    parser.add_argument("--cost", default="cpu-smollm2-135m", help="cost profile of the drafts")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = []
    for batch in map(int, asked.batch.split(",")):
        options = {"edits": str(asked.edits), "model": asked.model, "batch": batch, "number": asked.number,
                   "sizes": [int(size) for size in asked.sizes.split(",")], "cost": asked.cost}  # fmt: skip
        rows += run_phase(measure, options)
    result = {"kind": "copies", "environment": environment(), "rows": rows}
    print(f"kept in {write_result('copies', result)}", file=sys.stderr)
    if asked.json:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
