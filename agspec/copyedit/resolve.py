"""A program and its sources -> bytes. Never guesses: what does not fit is an error that says where and what would."""

from __future__ import annotations

from collections.abc import Sequence

from agspec.copyedit.program import Copy, Gen, Operation, Position, Program, Span
from agspec.copyedit.source import Source
from agspec.errors import CopyError


def resolve(program: Program, sources: Sequence[Source], *, limit: int | None = None) -> bytes:
    """What the program writes, at most ``limit`` bytes; raises CopyError.

    >>> from agspec.copyedit.program import parse
    >>> resolve(parse(b'<copy lines="2-2"/><gen>c</gen>'), [Source(b"a\\nb\\n")])
    b'b\\nc'
    """
    parts: list[bytes] = []
    size = 0
    for operation in program:
        parts.append(written(operation, sources))
        size += len(parts[-1])
        if limit is not None and size > limit:
            raise CopyError(operation.at, f"want a program that writes at most {limit:,} bytes, here it has {size:,}")
    return b"".join(parts)


def written(operation: Operation, sources: Sequence[Source]) -> bytes:
    """What one primitive writes; raises CopyError."""
    if isinstance(operation, Gen):
        return operation.text
    source = _source(operation, sources)
    if isinstance(operation, Copy):
        _check_lines(operation, source)
        return source.data[source.starts[operation.first - 1] : source.starts[operation.last]]
    for position in (operation.start, operation.end):
        _check_position(operation, position, source)
    if operation.start > operation.end:
        start, end = (f"{line}:{column}" for line, column in (operation.start, operation.end))
        raise CopyError(operation.at, f"want a span that ends at or after its start {start}, got the end {end}")
    return source.data[source.offset(operation.start) : source.offset(operation.end)]


def _source(operation: Copy | Span, sources: Sequence[Source]) -> Source:
    if not 1 <= operation.file <= len(sources):
        raise CopyError(operation.at, f"want a file from 1 to {len(sources)}, got {operation.file}")
    return sources[operation.file - 1]


def _lines_of(operation: Copy | Span, source: Source) -> str:
    file = f"file {operation.file}"
    return f"lines from 1 to {source.num_lines} of {file}" if source.num_lines else f"no copy of {file}, it is empty"


def _check_lines(copy: Copy, source: Source) -> None:
    if not 1 <= copy.first <= source.num_lines or not 1 <= copy.last <= source.num_lines:
        raise CopyError(copy.at, f"want {_lines_of(copy, source)}, got {copy.first}-{copy.last}")
    if copy.first > copy.last:
        raise CopyError(copy.at, f"want a last line from {copy.first} to {source.num_lines}, got {copy.last}")


def _check_position(span: Span, position: Position, source: Source) -> None:
    line, column = position
    if not 1 <= line <= source.num_lines:
        raise CopyError(span.at, f"want {_lines_of(span, source)}, got line {line}")
    if not 0 <= column <= source.width(line):
        raise CopyError(
            span.at, f"want a column from 0 to {source.width(line)} in line {line} of file {span.file}, got {column}"
        )
