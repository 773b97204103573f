"""The protocol that stores and policy see of a lookup engine, and our automaton behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from agspec.draft import addresses, kernels
from agspec.draft.addresses import PARTS, Addresses
from agspec.draft.automaton import EDGES_PER_TOKEN, STATES_PER_TOKEN, Automaton, Document
from agspec.draft.looking import fill
from agspec.tokens import EMPTY, Tokens

MIN_CAPACITY = 64 * 1024
"""Tokens of a lookup's first segment; each further one is four times as large, up to a quarter of the budget."""
BYTES_PER_TOKEN = 20 * STATES_PER_TOKEN + 16 * EDGES_PER_TOKEN / kernels.MAX_LOAD
"""Of an automaton's reserved arrays."""
SEGMENTS = 4
"""At the budget, this many segments of equal size: eviction drops the oldest quarter."""


@dataclass(frozen=True)
class Candidate:
    """A continuation some store knows.

    ``tokens`` int32 [n]; ``probs`` float64 [n], the chance of each token given that those before it were right;
    ``match_length`` in tokens; ``counts`` int32 [n], how often the store has seen what the token follows from;
    ``hits`` int32 [n], how often the token followed then.
    """

    tokens: Tokens
    probs: npt.NDArray[np.float64]
    match_length: int
    counts: Tokens
    hits: Tokens


class Slot(NamedTuple):
    """Where a lookup writes a continuation; arrays as of ``Candidate``, longer."""

    tokens: Tokens
    probs: npt.NDArray[np.float64]
    counts: Tokens
    hits: Tokens

    @classmethod
    def of(cls, size: int) -> Slot:
        """Room for ``size`` tokens."""
        return cls(np.empty(size, np.int32), np.empty(size), np.empty(size, np.int32), np.empty(size, np.int32))

    def candidate(self, n: int, match_length: int) -> Candidate:
        """A copy of the first ``n`` tokens."""
        return Candidate(
            self.tokens[:n].copy(), self.probs[:n].copy(), match_length, self.counts[:n].copy(), self.hits[:n].copy()
        )


Found = tuple[int, int]
"""(tokens written, length of the match); no tokens: nothing known."""


class Lookup(Protocol):
    """A lookup engine: documents that grow, and the best continuation of a context.

    ``open`` starts a document that goes on after ``tail`` (known already, not counted again). ``fill`` continues
    ``context`` (int32 [n], newest last) in ``slot`` by up to ``limit`` tokens while the product of probabilities stays
    at least ``floor``. ``parts``: where compiled code that does the same finds what it needs, see ``addresses``; None:
    only ``fill`` can.
    """

    @property
    def parts(self) -> Addresses | None: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def num_tokens(self) -> int: ...
    @property
    def num_evicted_tokens(self) -> int: ...
    def open(self, tail: Tokens = EMPTY) -> Any: ...
    def extend(self, document: Any, tokens: Tokens) -> None: ...
    def close(self, document: Any) -> None: ...
    def fill(self, context: Tokens, slot: Slot, *, limit: int, floor: float) -> Found: ...


class Drafting:
    """``draft``, by ``fill``."""

    def draft(self: Lookup, context: Tokens, *, limit: int, floor: float) -> Candidate | None:
        """What ``fill`` writes, in arrays of its own; None where nothing is known."""
        slot = Slot.of(limit)
        n, length = self.fill(context, slot, limit=limit, floor=floor)
        return slot.candidate(n, length) if n else None


class Compiled(Drafting):
    """``fill``, by compiled code that is told where the arrays are."""

    def __init__(self) -> None:
        self.parts = np.zeros((PARTS, 7), np.int64)

    def fill(self, context: Tokens, slot: Slot, *, limit: int, floor: float) -> Found:
        """See ``Lookup``: of what the parts know, the continuation with most expected tokens."""
        n, length = fill(self.parts, context, floor, limit, *slot)
        return n, length


LookupFactory = Callable[[int], Lookup]
"""Byte budget -> a new, empty lookup."""


class SamDocument:
    """A document of a SamLookup: where it grows now."""

    __slots__ = ("document", "segment")

    def __init__(self, segment: Automaton, document: Document) -> None:
        self.segment = segment
        self.document = document


class SamLookup(Compiled):
    """Suffix automata in segments: when the newest is full a larger one is begun, at the budget the oldest goes."""

    def __init__(self, budget_bytes: int) -> None:
        super().__init__()
        self.budget_bytes = budget_bytes
        self.num_evicted_tokens = 0
        self._largest = max(MIN_CAPACITY // 4, int(budget_bytes / SEGMENTS / BYTES_PER_TOKEN))
        self._capacity = min(MIN_CAPACITY, self._largest)
        self._segments = [Automaton(capacity=self._capacity)]
        self._tell()

    @property
    def memory_bytes(self) -> int:
        """Bytes of all segments."""
        return sum(segment.reserved_bytes for segment in self._segments)

    @property
    def num_tokens(self) -> int:
        """Tokens held."""
        return sum(len(segment) for segment in self._segments)

    def open(self, tail: Tokens = EMPTY) -> SamDocument:
        """See ``Lookup``."""
        return SamDocument(*self._resume(tail))

    def extend(self, document: SamDocument, tokens: Tokens) -> None:
        """See ``Lookup``."""
        while tokens.size:
            if document.segment in self._segments:
                tokens = tokens[document.segment.extend(document.document, tokens) :]
            if tokens.size:
                if document.segment is self._segments[-1]:
                    self._grow()
                document.segment, document.document = self._resume(document.document.tail)

    def close(self, document: SamDocument) -> None:
        """Nothing to do: a document that no longer grows stays until its segment goes."""

    def latest(self, context: Tokens) -> int | None:
        """Position (among all tokens ever given) of the latest end of ``context``'s longest suffix that goes on."""
        places, before = [], self.num_evicted_tokens
        for segment in self._segments:
            found, place = segment.latest(context)
            if found.length:
                places.append((found.length, before + place))
            before += len(segment)
        return max(places)[1] if places else None

    def check(self) -> None:
        """Integrity of every segment; raises StoreError."""
        for segment in self._segments:
            segment.check()

    def _resume(self, tail: Tokens) -> tuple[Automaton, Document]:
        document = self._segments[-1].resume(tail)
        if document is None:
            self._grow()
            document = self._segments[-1].resume(tail)
        return self._segments[-1], document or self._segments[-1].open()

    def _grow(self) -> None:
        self._capacity = min(4 * self._capacity, self._largest)
        self._segments.append(Automaton(capacity=self._capacity))
        while len(self._segments) > 1 and self.memory_bytes > self.budget_bytes:
            self.num_evicted_tokens += len(self._segments.pop(0))
        self._tell()

    def _tell(self) -> None:
        addresses.tell([(addresses.AUTOMATON, segment.arrays) for segment in self._segments], self.parts)
