"""What copying could give at most on an edit whose result is known: coverage, lengths of the formats, bounds.

Oracle programs of two kinds: ``ordered`` copies every run of lines that difflib matches (order kept, autojunk off),
``cheap`` is ``compile_edit``'s. A token of the result counts as covered when its first character lies in a copied line.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from agspec.copyedit.compile import Cost, compile_edit
from agspec.copyedit.kernel import Kernel
from agspec.copyedit.program import Copy, Gen, Program, parse, show
from agspec.copyedit.resolve import resolve
from agspec.copyedit.source import Source
from agspec.tokens import Tokenizer

RUN = 8
"""Tokens from which a run of equal ones counts as covered token by token."""
HISTOGRAM = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Lower ends of the classes of span lengths, in tokens."""


@dataclass(frozen=True)
class Case:
    """An edit; ``instruction``: what was asked for, as far as it is known."""

    name: str
    before: str
    after: str
    instruction: str = "Make the change."


@dataclass
class Sums:
    """Over all cases; tokens unless said otherwise.

    ``steps_*``: decode steps of the ordered program and its copies (by the kernel): tags free, tags decoded, and tokens
    that the grammar forces skipped.
    """

    num_cases: int = 0
    output: int = 0
    covered: int = 0
    covered_by_tokens: int = 0
    ordered: int = 0
    cheap: int = 0
    unified_diff: int = 0
    search_replace: int = 0
    steps_free: float = 0.0
    steps_decoded: float = 0.0
    steps_forced: float = 0.0
    num_shorter: int = 0
    num_exact: int = 0
    histogram: Counter[int] = field(default_factory=Counter)

    @property
    def bounds(self) -> dict[str, float]:
        """Times faster than decoding the output, at most."""
        names = {"tags free": self.steps_free, "tags decoded": self.steps_decoded, "forced skipped": self.steps_forced}
        return {name: self.output / steps if steps else 0.0 for name, steps in names.items()}


def measure(cases: Iterable[Case], tokenizer: Tokenizer, kernel: Kernel) -> Sums:
    """All cases."""
    sums = Sums()
    for case in cases:
        _add(sums, case, tokenizer, kernel)
    return sums


def ordered_program(before: Source, after: Source) -> Program:
    """Every matched run of lines copied, everything else generated."""
    found: list[Copy | Gen] = []
    matcher = difflib.SequenceMatcher(None, before.lines, after.lines, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            found.append(Copy(i + 1, j))
        elif m > k:
            found.append(Gen(b"".join(after.lines[k:m])))
    return tuple(found)


def unified(case: Case) -> str:
    """As ``diff -U3`` with headers."""
    before, after = (Source(text.encode()).lines for text in (case.before, case.after))
    lines = difflib.unified_diff([line.decode() for line in before], [line.decode() for line in after],
                                 f"a/{case.name}", f"b/{case.name}")  # fmt: skip
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def search_replace(case: Case) -> str:
    """SEARCH/REPLACE blocks, each with the fewest lines of context that make it stand once in the file."""
    before, after = Source(case.before.encode()), Source(case.after.encode())
    text = ""
    matcher = difflib.SequenceMatcher(None, before.lines, after.lines, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            continue
        above = below = 0
        while True:
            search = b"".join(before.lines[i - above : j + below])
            more = (above < i, j + below < before.num_lines)
            if (search and before.data.count(search) == 1) or not any(more):
                break
            if more[0] and (above <= below or not more[1]):
                above += 1
            else:
                below += 1
        head, tail = b"".join(before.lines[i - above : i]), b"".join(before.lines[j : j + below])
        replace = (head + b"".join(after.lines[k:m]) + tail).decode()
        text += f"{case.name}\n<<<<<<< SEARCH\n{search.decode()}=======\n{replace}>>>>>>> REPLACE\n"
    return text


def _add(sums: Sums, case: Case, tokenizer: Tokenizer, kernel: Kernel) -> None:
    before, after = Source(case.before.encode()), Source(case.after.encode())

    def size(text: str) -> int:
        return int(tokenizer.encode(text).size)

    ordered = ordered_program(before, after)
    cheap = compile_edit([before], after.data, cost=Cost(text=lambda text: float(size(text.decode()))))
    sums.num_cases += 1
    sums.output += size(case.after)
    sums.covered += _covered(ordered, case.after, tokenizer, before)
    sums.covered_by_tokens += _covered_by_tokens(case, tokenizer)
    lengths = [size(show(program).decode()) for program in (ordered, cheap)]
    sums.ordered += lengths[0]
    sums.cheap += lengths[1]
    sums.num_shorter += lengths[1] < size(case.after)
    sums.unified_diff += size(unified(case))
    sums.search_replace += size(search_replace(case))
    sums.num_exact += all(resolve(parse(show(program)), [before]) == after.data for program in (ordered, cheap))
    copies = 0.0
    forced = 1.0
    generated = 0
    for operation in ordered:
        if isinstance(operation, Gen):
            tokens = size(operation.text.decode())
            generated += tokens
            forced += 2 + tokens
        elif isinstance(operation, Copy):
            tokens = size(resolve((operation,), [before]).decode())
            copies += kernel.steps(tokens)
            forced += 3 + len(str(operation.first)) + len(str(operation.last))
            sums.histogram[max(low for low in HISTOGRAM if low <= max(1, tokens))] += 1
    sums.steps_free += generated + copies
    sums.steps_decoded += lengths[0] + copies
    sums.steps_forced += forced + copies


def _covered(program: Program, after: str, tokenizer: Tokenizer, before: Source) -> int:
    """Tokens of ``after`` whose first character lies in a copied line."""
    copied = bytearray()
    for operation in program:
        text = operation.text if isinstance(operation, Gen) else resolve((operation,), [before])
        copied += bytes([not isinstance(operation, Gen)]) * len(text.decode())
    offsets = tokenizer.backend.encode(after, add_special_tokens=False).offsets
    return sum(copied[start] for start, end in offsets if start < len(copied))


def _covered_by_tokens(case: Case, tokenizer: Tokenizer) -> int:
    """Tokens of runs of at least RUN that difflib matches."""
    before, after = (tokenizer.encode(text).tolist() for text in (case.before, case.after))
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks if block.size >= RUN)
