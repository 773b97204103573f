"""A suffix automaton over token documents that grow online and do not match across their borders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agspec.draft import kernels, reading
from agspec.draft.kernels import MAX_CONTEXT, PIECE, Arrays
from agspec.errors import StoreError
from agspec.tokens import EMPTY, Tokens, as_tokens

STATES_PER_TOKEN = 1.6
EDGES_PER_TOKEN = 2.2
"""Reserved per token of capacity; random text needs more of either, and then fills the automaton sooner."""


class Match(NamedTuple):
    """Longest suffix of a context that occurs: its state and its length in tokens."""

    state: int
    length: int


class Continuation(NamedTuple):
    """A token that followed a context: how often, and the position of the latest time (order of arrival)."""

    token: int
    count: int  # type: ignore[assignment]
    recent: int


class Document:
    """One growing document: its place in the automaton and its last MAX_CONTEXT tokens."""

    __slots__ = ("cursor", "last")

    def __init__(self, tail: Tokens = EMPTY) -> None:
        self.cursor = np.zeros(6, np.int32)
        self.last = np.zeros(MAX_CONTEXT, np.int32)
        self.last[: tail.size] = tail
        self.cursor[kernels.IN_TAIL] = tail.size

    @property
    def tail(self) -> Tokens:
        """The last tokens, int32 [n <= MAX_CONTEXT]."""
        return self.last[: self.cursor[kernels.IN_TAIL]]

    @property
    def position(self) -> int:
        """Position of the document's last token, NONE while empty."""
        return int(self.cursor[kernels.POSITION]) if self.cursor[kernels.IN_TAIL] else kernels.NONE


class Automaton:
    """Suffix automaton with occurrence counts (exact for contexts up to 64 tokens) and recency.

    ``capacity`` (tokens) fixes the memory: arrays are reserved once and never move, so growth never stalls; pages
    the text has not reached cost nothing. ``extend`` says how many tokens found room.

    >>> automaton = Automaton(capacity=1000)
    >>> document = automaton.open()
    >>> automaton.extend(document, [1, 2, 3, 1, 2])
    5
    >>> automaton.continuations([1, 2])
    [Continuation(token=3, count=1, recent=2)]
    """

    def __init__(self, *, capacity: int) -> None:
        if capacity < 1:
            raise StoreError(f"want a capacity of at least 1 token, got {capacity}")
        states = max(int(capacity * STATES_PER_TOKEN), 64)
        slots = max(int(capacity * EDGES_PER_TOKEN / kernels.MAX_LOAD), 256)
        self.arrays = Arrays(np.zeros((states, 5), np.int32), np.zeros((slots, 4), np.int32), np.zeros(3, np.int32))
        self.arrays.states[0] = (0, kernels.NONE, kernels.NONE, 0, kernels.NONE)
        self.arrays.used[kernels.NUM_STATES] = 1
        self._path = np.zeros(2 * (PIECE + MAX_CONTEXT), np.int32)

    def __len__(self) -> int:
        return int(self.arrays.used[kernels.NUM_TOKENS])

    @property
    def num_states(self) -> int:
        """States in use."""
        return int(self.arrays.used[kernels.NUM_STATES])

    @property
    def num_edges(self) -> int:
        """Transitions in use."""
        return int(self.arrays.used[kernels.NUM_EDGES])

    @property
    def memory_bytes(self) -> int:
        """Bytes in use: the states made so far, and the whole table of transitions."""
        per_state = self.arrays.states.itemsize * self.arrays.states.shape[1]
        return int(per_state * self.num_states + self.arrays.edges.nbytes + self._path.nbytes)

    @property
    def reserved_bytes(self) -> int:
        """Bytes of address space the arrays span."""
        return sum(array.nbytes for array in self.arrays) + self._path.nbytes

    def open(self) -> Document:
        """A new, empty document."""
        return Document()

    def extend(self, document: Document, tokens: Sequence[int] | Tokens) -> int:
        """Append ``tokens`` to ``document``; how many went in (fewer than given: the automaton is full)."""
        return int(kernels.append(self.arrays, document.cursor, document.last, as_tokens(tokens), self._path))

    def resume(self, tail: Tokens) -> Document | None:
        """A document that goes on after ``tail`` (counted elsewhere); None when the automaton is full."""
        document = Document(tail[-MAX_CONTEXT:])
        return document if kernels.new_piece(self.arrays, document.cursor, document.last, self._path) else None

    def match(self, context: Sequence[int] | Tokens) -> Match:
        """Longest suffix of the last 64 tokens of ``context`` that occurs."""
        state, length = reading.longest(self.arrays, as_tokens(context)[-MAX_CONTEXT:])
        return Match(int(state), int(length))

    def latest(self, context: Sequence[int] | Tokens) -> tuple[Match, int]:
        """Longest suffix of ``context`` that something followed, and the position where its latest such time ends."""
        state, length, position = reading.latest(self.arrays, as_tokens(context)[-MAX_CONTEXT:])
        return Match(int(state), int(length)), int(position)

    def continuations(self, context: Sequence[int] | Tokens) -> list[Continuation]:
        """What followed ``context`` (at most 64 tokens, as a whole), most frequent first; empty if it never did."""
        context = as_tokens(context)
        if context.size > MAX_CONTEXT:
            raise StoreError(f"want a context of at most {MAX_CONTEXT} tokens, got {context.size}")
        found = self.match(context)
        if found.length < context.size:
            return []
        n, size = 1, 0
        while n > size:
            size = n
            out = np.zeros((3, size), np.int32)
            n = int(reading.continuations(self.arrays, found.state, out[0], out[1], out[2]))
        rows = [Continuation(int(t), int(c), int(r)) for t, c, r in out[:, :n].T if c > 0]
        return sorted(rows, key=lambda row: (-row.count, -row.recent))

    def count(self, context: Sequence[int] | Tokens) -> int:
        """How often ``context`` (at most 64 tokens) occurs."""
        context = as_tokens(context)
        found = self.match(context)
        return int(self.arrays.states[found.state, kernels.COUNT]) if found.length == context.size <= MAX_CONTEXT else 0

    def check(self) -> None:
        """Raise StoreError when the arrays break a rule of suffix automata."""
        rules = {
            1: "the root has length 0 and no link",
            2: "a link leads to a shorter state",
            3: "a suffix occurs at least as often as what ends with it",
            4: "every transition is found in its list and in the table",
            5: "a transition leads to a longer state",
            6: "lists hold all transitions",
        }
        broken = int(reading.check(self.arrays))
        if broken:
            raise StoreError(f"automaton of {len(self)} tokens breaks the rule: {rules[broken]}")
