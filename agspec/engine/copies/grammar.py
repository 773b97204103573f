"""vLLM's grammar interface over a copy program: exact line numbers, tags in as few tokens as they can be.

``StructuredOutputGrammar`` of vLLM 0.32 (v1/structured_output/backend_types.py). Spliced tokens are not fed to it, only
sampled ones, so its state is that of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from agspec.copyedit.machine import START, Machine, State
from agspec.copyedit.program import Copy, Span
from agspec.copyedit.resolve import written
from agspec.copyedit.source import Source
from agspec.copyedit.token_machine import TokenMachine, Vocabulary
from agspec.engine.copies.request import CopyRequest
from agspec.engine.tape import allow_only

if TYPE_CHECKING:
    import torch

ROOM = 2
"""Tokens to spare beyond what closes a primitive and ends the program."""


class CopyGrammar:
    """One request's. ``closed``: the copy that a token would close, in the state before it."""

    def __init__(self, request: CopyRequest, vocabulary: Vocabulary) -> None:
        self._asked = request
        self._sources = request.files
        self._machine = TokenMachine(Machine(self._sources, spans=request.spans), vocabulary)
        self._vocabulary = vocabulary
        self._packed: dict[State, npt.NDArray[np.int32]] = {}
        self._pack(State("text", read=0))  # takes long the first time, which is no step's time here
        self._room = room_for_more(self._sources, vocabulary)
        self._close = len(self._machine.closing(State("text", read=0))) + 1
        self.reset()

    def reset(self) -> None:
        """Back to the start."""
        self._states: list[State] = [START]
        self._written: list[int] = [0]
        self._most = self._asked.max_tokens

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Advance over sampled tokens; False where one may not come."""
        for token in tokens:
            following = self._following(self._states[-1], token)
            if following is None:
                return False
            copy = self._closed(self._states[-1], following)
            more = 0 if copy is None else len(written(copy, self._sources))
            self._states.append(following)
            self._written.append(self._written[-1] + more)
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The tokens that may come, up to the one that closes a copy: what follows is conditioned on its text."""
        state, count = self._states[-1], 0
        for token in tokens:
            following = self._following(state, token)
            if following is None:
                break
            count += 1
            if self._closed(state, following) is not None:
                break
            state = following
        return tokens[:count]

    def rollback(self, num_tokens: int) -> None:
        """Step back."""
        if num_tokens:
            del self._states[-num_tokens:], self._written[-num_tokens:]

    def is_terminated(self) -> bool:
        """Never: the request ends by its end token."""
        return False

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Allow what may come now, int32 [rows, ceil(vocabulary / 32)]."""
        import torch

        row = bitmask[batch_index]
        forced = self._forced()
        if forced is not None:
            allow_only(forced, row)
            return
        row.zero_()
        packed = self._pack(self._states[-1])
        row[: packed.size] = torch.from_numpy(packed)

    def first_copy(self, tokens: Sequence[int]) -> tuple[int, Copy | Span] | None:
        """The first copy that ``tokens``, sampled from here, close: how many tokens that takes, and the copy."""
        state = self._states[-1]
        for count, token in enumerate(tokens, 1):
            following = self._following(state, token)
            if following is None:
                return None
            copy = self._closed(state, following)
            if copy is not None:
                return count, copy
            state = following
        return None

    def span(self, copy: Copy | Span) -> list[int]:
        """The tokens of what a copy writes."""
        return self._vocabulary.encode(written(copy, self._sources))

    @property
    def num_left(self) -> int:
        """Tokens that the program may still have."""
        return self._most - (len(self._states) - 1)

    def keep_within(self, num_left: int, *, after: int) -> None:
        """Once ``after`` more tokens are accepted, no more than ``num_left`` may follow."""
        self._most = min(self._most, len(self._states) - 1 + after + num_left)

    def _following(self, state: State, token: int) -> State | None:
        if token == self._vocabulary.end:
            return START if state == START else None
        return self._machine.advance(state, token)

    def _closed(self, state: State, following: State) -> Copy | Span | None:
        """A copy is closed by a token of its own, so its numbers stand in the state before it."""
        if following != START or state.kind == "text" or state == START:
            return None
        return self._machine.copy_of(state)

    def _forced(self) -> int | None:
        """The one token that may come: the tape's, or what closes the program where there is room for no more."""
        at, state = len(self._states) - 1, self._states[-1]
        if self._asked.tape is not None:
            return self._asked.tape[min(at, len(self._asked.tape) - 1)]
        if state == START:
            full = self._written[-1] > self._asked.max_bytes or self.num_left <= self._room
            return self._vocabulary.end if full or (self._asked.single and at > 0) else None
        if state.kind == "text" and self.num_left <= self._close + ROOM:
            return self._machine.closing(state)[0]
        return None

    def _pack(self, state: State) -> npt.NDArray[np.int32]:
        packed = self._packed.get(state)
        if packed is None:
            mask = self._machine.mask(state)
            padded = np.zeros(-(-mask.size // 32) * 32, np.bool_)
            padded[: mask.size] = mask
            packed = self._packed[state] = np.packbits(padded, bitorder="little").view(np.int32)
        return packed


def room_for_more(sources: Sequence[Source], vocabulary: Vocabulary) -> int:
    """Tokens that must be left for one more primitive over these sources, and the end; with fewer the program ends."""
    lines = max((source.num_lines for source in sources), default=0)
    width = max((source.width(i + 1) for source in sources for i in range(source.num_lines)), default=0)
    tag = f'<copy file="{len(sources)}" span="{lines}:{width}-{lines}:{width}"/>'
    return max(len(vocabulary.encode(tag.encode())), len(vocabulary.encode(b"<gen></gen>"))) + 1 + ROOM
