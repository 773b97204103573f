"""A program's text as it is decoded: what is known of the result so far, handed out once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agspec.copyedit.machine import START, Machine
from agspec.copyedit.program import CLOSE, OPEN, parse
from agspec.copyedit.resolve import written
from agspec.copyedit.source import Source

_PERHAPS = re.compile(rb"<(?:/(?:\\*(?:g(?:en?)?)?)?)?\Z")
"""The beginning of an end tag, or of its escape, at the end of what came."""


class Unfolding:
    """Feed it a program piece by piece; copied text comes out with the byte that closes its tag."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._machine = Machine(sources)
        self._state = START
        self._tag = b""
        self._text = b""
        self._program = bytearray()
        self.copies: list[bytes] = []
        """What each copy wrote, so far."""

    @property
    def program(self) -> bytes:
        """All that came."""
        return bytes(self._program)

    @property
    def whole(self) -> bool:
        """Whether the program may end here."""
        return self._state == START

    def feed(self, piece: bytes) -> bytes:
        """What more is known of the result; CopyError from bytes that are no program."""
        out = b""
        for byte in piece:
            following = self._machine.step(self._state, byte)
            if following is None:
                parse(self.program + piece)  # says where and what was wanted
            self._program.append(byte)
            if self._state.kind == "text":
                self._text += bytes([byte])
                if following == START:
                    out += self._known(len(self._text) - len(CLOSE))
                    self._text = b""
            else:
                self._tag += bytes([byte])
                if following == START:
                    (copy,) = parse(self._tag)
                    self.copies.append(written(copy, self._sources))
                    out += self.copies[-1]
                if following == START or (following is not None and following.kind == "text"):
                    self._tag = b""
            assert following is not None
            self._state = following
        if self._state.kind == "text":
            perhaps = _PERHAPS.search(self._text)
            out += self._known(perhaps.start() if perhaps else len(self._text))
        return out

    def _known(self, size: int) -> bytes:
        """The first ``size`` bytes of the text that waits, unescaped."""
        known, self._text = self._text[:size], self._text[size:]
        if not known:
            return b""
        (operation,) = parse(OPEN + known + CLOSE)
        return written(operation, ())
