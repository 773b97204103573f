"""Programs: what they are made of, read and printed. Bytes in, bytes out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from agspec.errors import CopyError

Position = tuple[int, int]
"""(line from 1, byte column from 0)."""


@dataclass(frozen=True)
class Copy:
    """Lines ``first`` to ``last`` of source ``file``, all from 1, both included. ``at``: its byte in the program."""

    first: int
    last: int
    file: int = 1
    at: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Span:
    """Bytes from ``start`` up to, not with, ``end``."""

    start: Position
    end: Position
    file: int = 1
    at: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Gen:
    """New text, unescaped."""

    text: bytes
    at: int = field(default=0, compare=False)


Operation = Copy | Span | Gen
Program = tuple[Operation, ...]

OPEN, CLOSE = b"<gen>", b"</gen>"
COPY = b"<copy"
_NUMBER = rb"([1-9][0-9]{0,8})"
_COLUMN = rb"(0|[1-9][0-9]{0,8})"
_COPY = re.compile(
    rb'<copy(?: file="' + _NUMBER + rb'")? (?:lines="' + _NUMBER + rb"-" + _NUMBER + rb'"|span="' + _NUMBER + rb":"
    + _COLUMN + rb"-" + _NUMBER + rb":" + _COLUMN + rb'")/>'
)  # fmt: skip
_CLOSED = re.compile(rb"</(\\*)gen>")
_ESCAPED = re.compile(rb"</(\\+)gen>")
_WANT = 'want <copy lines="i-j"/>, <copy span="i:a-j:b"/> (either with file="k" before) or <gen>'
_SHOWN = 40


def parse(text: bytes) -> Program:
    """The program in ``text``; raises CopyError with the byte where it stops being one.

    >>> parse(b'<copy lines="1-2"/><gen>x</gen>')
    (Copy(first=1, last=2, file=1, at=0), Gen(text=b'x', at=19))
    """
    found: list[Operation] = []
    at = 0
    while at < len(text):
        if text.startswith(OPEN, at):
            end = text.find(CLOSE, at + len(OPEN))
            if end < 0:
                raise CopyError(at, "want </gen> after this <gen>, got the program's end")
            found.append(Gen(_ESCAPED.sub(_less, text[at + len(OPEN) : end]), at))
            at = end + len(CLOSE)
            continue
        match = _COPY.match(text, at)
        if match is None:
            shown = text[at : at + _SHOWN].decode("utf-8", "replace")
            raise CopyError(at, f"{_WANT}, got {shown!r}")
        file, *numbers = (None if group is None else int(group) for group in match.groups())
        first, last, line, column, to_line, to_column = numbers
        if first is not None and last is not None:
            found.append(Copy(first, last, file or 1, at))
        elif line is not None and column is not None and to_line is not None and to_column is not None:
            found.append(Span((line, column), (to_line, to_column), file or 1, at))
        at = match.end()
    return tuple(found)


def show(program: Program) -> bytes:
    """The program as text, the first source without its number.

    >>> show((Copy(1, 2, file=2), Gen(b"</gen>")))
    b'<copy file="2" lines="1-2"/><gen></\\\\gen></gen>'
    """
    return b"".join(_shown(operation) for operation in program)


def _shown(operation: Operation) -> bytes:
    if isinstance(operation, Gen):
        return OPEN + _CLOSED.sub(_more, operation.text) + CLOSE
    file = b"" if operation.file == 1 else b' file="%d"' % operation.file
    if isinstance(operation, Copy):
        return COPY + file + b' lines="%d-%d"/>' % (operation.first, operation.last)
    return COPY + file + b' span="%d:%d-%d:%d"/>' % (*operation.start, *operation.end)


def _more(match: re.Match[bytes]) -> bytes:
    return b"</" + match[1] + b"\\gen>"


def _less(match: re.Match[bytes]) -> bytes:
    return b"</" + match[1][1:] + b"gen>"
