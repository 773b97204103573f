"""The grammar of programs over tokens: which may come at a state, and where each leads. For any tokenizer.

Where bytes are certain only the tokenizer's own tokens of them may come, so that a tag costs as few steps as it can and
a copy ends where a token ends. Text may be cut into any tokens; one may run from it through ``</gen>`` into what
follows. Numbers are written in tokens of digits alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from agspec.copyedit.machine import START, TAGS, Machine, State
from agspec.copyedit.program import CLOSE, Copy, Span
from agspec.copyedit.vocabulary import token_bytes
from agspec.errors import CopyError
from agspec.tokens import Tokenizer

Mask = npt.NDArray[np.bool_]
"""bool [vocabulary]."""
_TERMINATORS = b'-:"'
CACHED = 4096
"""States whose masks are kept."""


class Vocabulary:
    """A tokenizer's tokens as bytes, and those of them that the grammar asks for."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.end = tokenizer.end_id
        self.texts = token_bytes(tokenizer)
        self.size = len(self.texts)

    @cached_property
    def digits(self) -> tuple[int, ...]:
        """Tokens of digits alone."""
        return tuple(i for i, text in enumerate(self.texts) if text is not None and text.isdigit())

    @cached_property
    def plain(self) -> Mask:
        """Tokens with text and without ``<``: they stay in a text that no tag has begun in."""
        return np.array([text is not None and b"<" not in text for text in self.texts])

    @cached_property
    def watched(self) -> dict[int, tuple[int, ...]]:
        """By the bytes of ``</gen>`` that came: tokens that may change what follows."""
        return {
            at: tuple(
                i for i, text in enumerate(self.texts)
                if text and (b"<" in text or (at and text.startswith(CLOSE[at : at + 1])))
            )
            for at in range(len(CLOSE))
        }  # fmt: skip

    @lru_cache(maxsize=CACHED)  # noqa: B019 (a vocabulary lives as long as its tokenizer)
    def first(self, text: bytes) -> int:
        """The first token of ``text``."""
        return int(self._tokenizer.encode(text.decode())[0])

    def bytes_of(self, tokens: Iterable[int]) -> bytes:
        """What ``tokens`` write; special ones, the end of the turn among them, write nothing."""
        return b"".join(self.texts[token] or b"" for token in tokens)

    def encode(self, text: bytes) -> list[int]:
        """All tokens of ``text``."""
        found: list[int] = self._tokenizer.encode(text.decode()).tolist()
        return found


class TokenMachine:
    """A ``Machine`` over the tokens of a vocabulary."""

    def __init__(self, machine: Machine, vocabulary: Vocabulary) -> None:
        self.machine = machine
        self.vocabulary = vocabulary
        self._masks: dict[State, Mask] = {}

    def advance(self, state: State, token: int) -> State | None:
        """The state after ``token``; None where it may not come."""
        if token == self.vocabulary.end or not 0 <= token < self.vocabulary.size or not self.mask(state)[token]:
            return None
        text = self.vocabulary.texts[token]
        return None if text is None else self.machine.run(text, state)

    def mask(self, state: State) -> Mask:
        """Tokens that may come; at START the end of the turn too. Not to be written to."""
        found = self._masks.get(state)
        if found is None:
            if len(self._masks) >= CACHED:
                self._masks.clear()
            found = self._masks[state] = self._text(state) if state.kind == "text" else self._only(self._few(state))
        return found

    def closing(self, state: State) -> list[int]:
        """Tokens of a short way to where the program may end."""
        return self.vocabulary.encode(self.machine.closing(state))

    def copy_of(self, state: State) -> Copy | Span | None:
        """The copy whose last tag token may come at ``state``; None where it is not certain yet."""
        for byte in self.machine.forced(state) or self._ending(state):
            copy = self.machine.closed(state)
            if copy is not None:
                return copy
            following = self.machine.step(state, byte)
            if following is None:
                return None
            state = following
        return None

    def tokens_of(self, program: bytes) -> list[int]:
        """A program as tokens that may come one after the other, the end of the turn last; raises CopyError."""
        state, at = START, 0
        found: list[int] = []
        while at < len(program):
            piece = self._piece(state, program, at)
            for token in self.vocabulary.encode(piece):
                following = self.advance(state, token)
                if following is None:
                    shown = piece.decode("utf-8", "replace")[:40]
                    raise CopyError(at, f"want a program over these sources, got {shown!r}")
                found.append(token)
                state = following
            at += len(piece)
        return [*found, self.vocabulary.end]

    def _piece(self, state: State, program: bytes, at: int) -> bytes:
        """What comes next that is tokenised by itself: a number, the rest of a tag, text with its end."""
        if state.kind == "text":
            end = program.find(CLOSE, at)
            return program[at : end + len(CLOSE) if end >= 0 else len(program)]
        number = at
        while number < len(program) and program[number : number + 1].isdigit():
            number += 1
        if number > at:
            return program[at:number]
        known = [word for word in alternatives(self.machine, state) if program.startswith(word, at)]
        return max(known, key=len, default=program[at : at + 1])

    def _ending(self, state: State) -> bytes:
        return b'"/>' if self.machine.step(state, ord('"')) is not None else b""

    def _few(self, state: State) -> Iterable[int]:
        """Tokens that may come outside text."""
        if state == START:
            yield self.vocabulary.end
        for word in alternatives(self.machine, state):
            yield self.vocabulary.first(word)
        if state.kind not in TAGS:
            for token in self.vocabulary.digits:
                if self.machine.run(self.vocabulary.texts[token] or b"", state) is not None:
                    yield token

    def _only(self, tokens: Iterable[int]) -> Mask:
        mask = np.zeros(self.vocabulary.size, np.bool_)
        mask[list(tokens)] = True
        return mask

    def _text(self, state: State) -> Mask:
        mask = self.vocabulary.plain.copy()
        for token in self.vocabulary.watched[state.read or 0]:
            mask[token] = self.machine.run(self.vocabulary.texts[token] or b"", state) is not None
        return mask


def alternatives(machine: Machine, state: State) -> list[bytes]:
    """What may come up to the next number or text: the rest of each tag that is possible, or a number's end."""
    found: list[bytes] = []
    waiting = [(b"", state)]
    while waiting:
        word, here = waiting.pop()
        number = here.kind not in TAGS
        if word and (number or here == START):
            found.append(word)
            continue
        for byte in _TERMINATORS if number else b"<cgfls" + here.word[:1]:
            following = machine.step(here, byte)
            if following is not None:
                waiting.append((word + bytes([byte]), following))
            if here.kind == "literal" and following is not None:
                break
    return sorted(set(found))
