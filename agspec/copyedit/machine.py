"""The grammar of programs over given sources, byte by byte: a pure transition function.

Its language is exactly the programs that resolve without error. Limits in the numbers (``1 <= i <= j <= lines``) hold
at every byte: no digit is taken that no number allowed begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from agspec.copyedit.program import CLOSE, Copy, Span
from agspec.copyedit.source import Source

Allowed = range | tuple[int, ...]
"""Numbers that may stand at a place."""


class State(NamedTuple):
    """``known``: numbers of the copy read so far, ``read``: what was read of the next (None: nothing yet).

    In kind "text" ``read`` counts the bytes of ``</gen>`` that came. In kind "literal" ``word`` must come, then it
    is ``after``.
    """

    kind: str
    known: tuple[int, ...] = ()
    read: int | None = None
    word: bytes = b""
    after: State | None = None


START = State("op")
"""Between two primitives: the one place where a program may end."""
TAGS = ("op", "open", "literal", "attribute")
"""Kinds of state in and before a tag, outside its numbers."""
_DIGITS = frozenset(b"0123456789")
_MINUS, _COLON, _QUOTE, _LESS = b'-:"<'
_CHOICES = b'<cgfls0123456789-:"'
"""Bytes that some state outside text and literals takes."""


class Machine:
    """``spans``: whether copies by column are in the language; ``gen``: whether new text is."""

    def __init__(self, sources: Sequence[Source], *, spans: bool = True, gen: bool = True) -> None:
        self._sources = sources
        self._spans = spans
        self._gen = gen
        self._files = tuple(number for number, source in enumerate(sources, 1) if source.num_lines)

    def step(self, state: State, byte: int) -> State | None:
        """The state after ``byte``; None: no program goes on so."""
        match state.kind:
            case "text":
                return _text(state.read or 0, byte)
            case "literal":
                return _along(state) if byte == state.word[0] else None
            case "op":
                return State("open") if byte == _LESS and (self._gen or self._files) else None
            case "open":
                if byte == ord("g") and self._gen:
                    return _literal(b"en>", State("text", read=0))
                return _literal(b"opy ", State("attribute")) if byte == ord("c") and self._files else None
            case "attribute":
                return self._attribute(state.known, byte)
            case _:
                return self._number(state, byte)

    def run(self, data: bytes, state: State = START) -> State | None:
        """The state after ``data``."""
        for byte in data:
            following = self.step(state, byte)
            if following is None:
                return None
            state = following
        return state

    def forced(self, state: State) -> bytes:
        """The bytes that must come next, as far as they are certain and to the end of a primitive at most."""
        found = bytearray()
        while (byte := self._only(state)) is not None:
            found.append(byte)
            state = self._after(state, byte)
            if state == START:
                break
        return bytes(found)

    def closing(self, state: State) -> bytes:
        """A short way from ``state`` to where the program may end."""
        found = bytearray()
        while state != START:
            found.append(self._towards_end(state))
            state = self._after(state, found[-1])
        return bytes(found)

    def closed(self, state: State) -> Copy | Span | None:
        """The copy that the next byte closes; None: it closes none."""
        if state.kind != "literal" or state.after != START or len(state.word) > 1:
            return None
        file, first, last, *more = state.known
        return Span((first, last), (more[0], more[1]), file) if more else Copy(first, last, file)

    def _after(self, state: State, byte: int) -> State:
        following = self.step(state, byte)
        assert following is not None
        return following

    def _attribute(self, known: tuple[int, ...], byte: int) -> State | None:
        if byte == ord("f") and not known:
            return _literal(b'ile="', State("file"))
        if not known and 1 not in self._files:
            return None
        file = known or (1,)
        if byte == ord("l"):
            return _literal(b'ines="', State("first", file))
        return _literal(b'pan="', State("line", file)) if byte == ord("s") and self._spans else None

    def _number(self, state: State, byte: int) -> State | None:
        allowed = self._allowed(state)
        if byte in _DIGITS:
            longer = _extended(state.read, byte - ord("0"), allowed)
            return None if longer is None else state._replace(read=longer)
        end, following = _NEXT[state.kind]
        if byte != end or state.read is None or state.read not in allowed:
            return None
        return following((*state.known, state.read))

    def _allowed(self, state: State) -> Allowed:
        """The numbers that may stand here."""
        if state.kind == "file":
            return self._files
        file, *known = state.known
        source = self._sources[file - 1]
        match state.kind:
            case "first" | "line":
                return range(1, source.num_lines + 1)
            case "last" | "to_line":
                return range(known[0], source.num_lines + 1)
            case "column":
                return range(source.width(known[0]) + 1)
            case _:
                line, column, to_line = known
                return range(column if to_line == line else 0, source.width(to_line) + 1)

    def _only(self, state: State) -> int | None:
        """The one byte that may come; None where there are several."""
        if state.kind == "literal":
            return state.word[0]
        choices = [byte for byte in _CHOICES if self.step(state, byte) is not None] if state.kind != "text" else []
        return choices[0] if len(choices) == 1 else None

    def _towards_end(self, state: State) -> int:
        if state.kind == "text":
            return CLOSE[state.read or 0]
        if state.kind in _NEXT and self.step(state, _NEXT[state.kind][0]) is not None:
            return _NEXT[state.kind][0]
        if state.kind == "literal":
            return state.word[0]
        return next(byte for byte in _CHOICES if self.step(state, byte) is not None)


def _text(at: int, byte: int) -> State:
    if byte != CLOSE[at]:
        return State("text", read=1 if byte == _LESS else 0)
    return START if at + 1 == len(CLOSE) else State("text", read=at + 1)


def _literal(word: bytes, after: State, known: tuple[int, ...] = ()) -> State:
    return State("literal", known, word=word, after=after)


def _along(state: State) -> State:
    assert state.after is not None
    return state._replace(word=state.word[1:]) if len(state.word) > 1 else state.after


def _tail(known: tuple[int, ...]) -> State:
    return _literal(b"/>", START, known)


def _extended(read: int | None, digit: int, allowed: Allowed) -> int | None:
    """The number with one digit more; None where no allowed one begins so."""
    if read == 0:
        return None
    number = digit if read is None else 10 * read + digit
    if number == 0:
        return 0 if 0 in allowed else None
    if isinstance(allowed, range):
        return number if _begins(number, allowed.start, allowed.stop - 1) else None
    return number if any(_begins(number, one, one) for one in allowed) else None


def _begins(number: int, low: int, high: int) -> bool:
    """Whether a number from ``low`` to ``high`` begins with the digits of ``number``."""
    first = last = number
    while first <= high:
        if last >= low:
            return True
        first, last = 10 * first, 10 * last + 9
    return False


_NEXT: dict[str, tuple[int, Callable[[tuple[int, ...]], State]]] = {
    "file": (_QUOTE, lambda known: _literal(b" ", State("attribute", known))),
    "first": (_MINUS, lambda known: State("last", known)),
    "last": (_QUOTE, _tail),
    "line": (_COLON, lambda known: State("column", known)),
    "column": (_MINUS, lambda known: State("to_line", known)),
    "to_line": (_COLON, lambda known: State("to_column", known)),
    "to_column": (_QUOTE, _tail),
}
"""Kind of number -> what ends it, and the state after that."""
