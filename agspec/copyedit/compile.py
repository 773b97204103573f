"""Before and after -> the cheapest program, by what it costs to decode."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from agspec.copyedit.matching import longest_runs
from agspec.copyedit.program import Copy, Gen, Operation, Program, Span
from agspec.copyedit.source import Source
from agspec.copyedit.spans import with_spans

BYTES_A_TOKEN = 3.5
"""Of code, in the tokenizers of coding models."""


def by_bytes(text: bytes) -> float:
    """Decode steps of generated text, where no tokenizer is at hand."""
    return len(text) / BYTES_A_TOKEN


@dataclass(frozen=True)
class Cost:
    """Decode steps: ``text`` of generated text, ``gen`` more for its tags, ``copy`` for a copy's, ``digit`` for each.

    The defaults are those of a grammar under which tags that are certain cost nothing (facts in arXiv 2604.18170's
    terms: one step to choose the primitive, one for "-", one for the closing quote, one for the end tag).
    """

    text: Callable[[bytes], float] = by_bytes
    gen: float = 2.0
    copy: float = 3.0
    digit: float = 1.0

    def of(self, program: Program) -> float:
        """Of a program."""
        total = 0.0
        for operation in program:
            if isinstance(operation, Gen):
                total += self.gen + self.text(operation.text)
            elif isinstance(operation, Copy):
                total += self.lines(operation.file, operation.first, operation.last)
            else:
                total += self.span(operation)
        return total

    def lines(self, file: int, first: int, last: int) -> float:
        """Of a copy of lines."""
        digits = len(str(first)) + len(str(last)) + (1 + len(str(file)) if file > 1 else 0)
        return self.copy + self.digit * digits

    def span(self, span: Span) -> float:
        """Of a copy by column."""
        numbers = (*span.start, *span.end, *((span.file,) if span.file > 1 else ()))
        return self.copy + 2 + self.digit * sum(len(str(number)) for number in numbers)


PLAIN = Cost()


def compile_edit(before: Sequence[Source], after: bytes, *, cost: Cost = PLAIN, spans: bool = False) -> Program:
    """The program that makes ``after`` of ``before`` in the fewest decode steps: moves and repeats are found.

    A copy stands only where it is cheaper than generating. Cheapest among programs of line copies that run as far as
    their lines agree, which none beats by more than the digits of its numbers. ``spans``: long stretches inside
    generated text are copied by column.
    """
    target = Source(after)
    lines = target.lines
    length, place = longest_runs([source.lines for source in before], lines)
    begins = [0, *accumulate(source.num_lines + 1 for source in before)]
    texts = [cost.text(line) for line in lines]
    n = len(lines)
    inside, outside = [0.0] * (n + 1), [0.0] * (n + 1)  # least cost from line i on, within generated text or not
    copies: list[Copy | None] = [None] * n
    within, without = [False] * n, [False] * n  # whether line i is copied, coming from either
    for i in range(n - 1, -1, -1):
        copied = float("inf")
        if length[i]:
            file = bisect_right(begins, int(place[i])) - 1
            first = int(place[i]) - begins[file] + 1
            copy = copies[i] = Copy(first, first + int(length[i]) - 1, file + 1)
            copied = cost.lines(copy.file, copy.first, copy.last) + outside[i + int(length[i])]
        generated = texts[i] + inside[i + 1]
        within[i], without[i] = copied < generated, copied < cost.gen + generated
        inside[i], outside[i] = min(copied, generated), min(copied, cost.gen + generated)
    program = _along(lines, copies, within, without)
    return with_spans(program, before, cost.text, cost.span, cost.gen) if spans else program


def _along(
    lines: Sequence[bytes], copies: Sequence[Copy | None], within: Sequence[bool], without: Sequence[bool]
) -> Program:
    """The program of the choices."""
    found: list[Operation] = []
    text: list[bytes] = []
    i = 0
    while i < len(lines):
        copy = copies[i]
        if copy is not None and (within if text else without)[i]:
            if text:
                found.append(Gen(b"".join(text)))
                text = []
            found.append(copy)
            i += copy.last - copy.first + 1
        else:
            text.append(lines[i])
            i += 1
    return (*found, Gen(b"".join(text))) if text else tuple(found)
