"""Two hundred edits by the small model left to itself: whatever it writes under the grammar is a program that resolves.

``make e2e`` runs these.
"""

from __future__ import annotations

import random
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from agspec.copyedit.program import Copy, Gen, Span, parse
from agspec.copyedit.resolve import resolve
from agspec.copyedit.source import Source
from agspec.copyedit.token_machine import Vocabulary
from agspec.engine.copies.edits import SCHEDULER, Edits
from agspec.engine.copies.request import CopyRequest
from agspec.engine.launcher import PROPOSER, make_llm
from agspec.engine.phase import run_phase
from agspec.settings import Settings
from agspec.tokens import load_tokenizer
from tests.engine.copy_jobs import prompt_of

pytestmark = pytest.mark.long
EDITS = 200


def files() -> list[str]:
    """Short files of the standard library, and some that are odd."""
    folder = Path(sysconfig.get_path("stdlib"))
    found = [path.read_text("utf-8", "replace") for path in sorted(folder.glob("*.py")) if path.stat().st_size < 4000]
    return [*found[:30], "", "x", "\n\n\n", "a\r\nb\r\n\tc", "é漢😀 = 1\n" * 12, "</gen>\n<gen>\n" * 5]


def free() -> list[dict[str, Any]]:
    """Sixteen at a time, drafted, greedy to hot, with and without copies by column, with little room and with more.

    Without seeds: vLLM 0.32 on a CPU ends its engine when a seeded request's prompt is cut over steps.
    """
    tokenizer = load_tokenizer("embedded")
    vocabulary = Vocabulary(tokenizer)
    llm = make_llm("embedded", settings=Settings(), proposer=PROPOSER, max_model_len=4096, max_num_seqs=16,
                   scheduler_cls=SCHEDULER, async_scheduling=False)  # fmt: skip
    edits = Edits(llm, vocabulary.end)
    rng = random.Random(7)
    begun = []
    sources = files()
    for number in range(EDITS):
        source = sources[number % len(sources)]
        request = CopyRequest(
            sources=(source,),
            max_tokens=rng.randint(1, 120),
            spans=number % 3 == 0,
            max_bytes=rng.choice([200, 1 << 22]),
        )
        edit = edits.start(f"e{number}", prompt_of(tokenizer, source), request,
                           temperature=rng.choice([0.0, 0.7, 1.2]))  # fmt: skip
        begun.append((source, edit))
    edits.run()
    return [
        {"source": source, "program": vocabulary.bytes_of(edit.tokens),
         "done": edit.done, "stopped": edit.stopped, "splices": edit.num_splices}
        for source, edit in begun
    ]  # fmt: skip


def test_every_program_parses_resolves_and_ends() -> None:
    found = run_phase(free)
    assert len(found) == EDITS
    kinds = {Copy: 0, Span: 0, Gen: 0}
    for edit in found:
        assert edit["done"], edit
        program = parse(edit["program"])
        resolve(program, [Source(edit["source"].encode())])
        assert edit["splices"] == sum(not isinstance(one, Gen) for one in program)
        for one in program:
            kinds[type(one)] += 1
    assert min(kinds[Copy], kinds[Gen]) > 20
    assert kinds[Span] > 0
