"""Copies by column: long stretches of generated text that stand in a source, as in a line of a megabyte."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agspec.copyedit.program import Gen, Operation, Program, Span
from agspec.copyedit.source import Source

SEED = 24
"""Bytes that must agree for a stretch to be looked at."""


def with_spans(
    program: Program,
    sources: Sequence[Source],
    text_cost: Callable[[bytes], float],
    span_cost: Callable[[Span], float],
    gen_cost: float,
) -> Program:
    """The program with each generated text cut where copying a stretch of it by column is cheaper."""
    seeds: dict[bytes, tuple[int, int]] = {}
    for number, source in enumerate(sources, 1):
        for at in range(0, len(source.data) - SEED + 1, SEED):
            seeds.setdefault(source.data[at : at + SEED], (number, at))
    found: list[Operation] = []
    for operation in program:
        if isinstance(operation, Gen) and len(operation.text) >= 2 * SEED:
            found += _cut(operation.text, sources, seeds, text_cost, span_cost, gen_cost)
        else:
            found.append(operation)
    return tuple(found)


def _cut(
    text: bytes,
    sources: Sequence[Source],
    seeds: dict[bytes, tuple[int, int]],
    text_cost: Callable[[bytes], float],
    span_cost: Callable[[Span], float],
    gen_cost: float,
) -> list[Operation]:
    """Left to right, each stretch as far as it goes. The seeds lie a seed apart, so a stretch of two holds one."""
    found: list[Operation] = []
    done = at = 0
    while at <= len(text) - SEED:
        place = seeds.get(text[at : at + SEED])
        if place is None:
            at += 1
            continue
        number, start = place
        source = sources[number - 1]
        begin, end = at, at + SEED
        while begin > done and start > 0 and text[begin - 1] == source.data[start - 1]:
            begin, start = begin - 1, start - 1
        stop = start + end - begin
        while end < len(text) and stop < len(source.data) and text[end] == source.data[stop]:
            end, stop = end + 1, stop + 1
        whole_begin, whole_end = _whole_characters(text, begin, end)
        start, begin, end = start + whole_begin - begin, whole_begin, max(whole_begin, whole_end)
        span = Span(source.position(start), source.position(start + end - begin), number)
        if text_cost(text[begin:end]) > span_cost(span) + gen_cost:
            if begin > done:
                found.append(Gen(text[done:begin]))
            found.append(span)
            done = at = end
        else:
            at = max(at + 1, end)
    if done < len(text) or not found:
        found.append(Gen(text[done:]))
    return found


def _whole_characters(text: bytes, begin: int, end: int) -> tuple[int, int]:
    """The stretch without the pieces of UTF-8 characters at its ends."""
    while begin < end and text[begin] & 0xC0 == 0x80:
        begin += 1
    while end > begin and end < len(text) and text[end] & 0xC0 == 0x80:
        end -= 1
    return begin, end
