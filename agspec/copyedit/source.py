"""A file that is copied from: its lines, by byte."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

import orjson

from agspec.copyedit.program import Position


class Source:
    """Bytes with lines that end at ``\\n`` only; the last may lack it."""

    def __init__(self, data: bytes, *, lines: list[bytes] | None = None) -> None:
        self.data = data
        self._lines = lines

    @classmethod
    def escaped(cls, data: bytes) -> Source:
        """``data`` (UTF-8) as it stands in a JSON string, where its lines still are lines to copy.

        >>> Source.escaped(b'say "hi"\\nbye').lines
        [b'say \\\\"hi\\\\"\\\\n', b'bye']
        """
        lines = [orjson.dumps(line.decode())[1:-1] for line in cls(data).lines]
        return cls(b"".join(lines), lines=lines)

    @cached_property
    def lines(self) -> list[bytes]:
        """Each line with its end."""
        if self._lines is not None:
            return self._lines
        lines = self.data.split(b"\n")
        last = lines.pop()
        return [line + b"\n" for line in lines] + ([last] if last else [])

    @cached_property
    def starts(self) -> list[int]:
        """Byte where each line begins, and the file's length."""
        starts = [0]
        for line in self.lines:
            starts.append(starts[-1] + len(line))
        return starts

    @property
    def num_lines(self) -> int:
        """Lines."""
        return len(self.lines)

    def width(self, line: int) -> int:
        """Bytes of a line (from 1), its end included: the largest column in it."""
        return len(self.lines[line - 1])

    def offset(self, position: Position) -> int:
        """Byte of a position."""
        line, column = position
        return self.starts[line - 1] + column

    def position(self, offset: int) -> Position:
        """Position of a byte; the file's end is the end of its last line."""
        line = min(bisect_right(self.starts, offset), self.num_lines)
        return line, offset - self.starts[line - 1]
