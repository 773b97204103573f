"""A frozen lookup: a sorted corpus that is read and never grows."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from agspec.draft import addresses
from agspec.draft.lookup import Compiled
from agspec.draft.suffix_array import SEPARATOR, followed, sort
from agspec.errors import StoreError
from agspec.tokens import EMPTY, Tokens


class Sorted(NamedTuple):
    """The arrays of a sorted corpus, all int32; see ``suffix_array``. They may be memory-mapped."""

    tokens: Tokens
    order: Tokens
    heads: Tokens


class FrozenLookup(Compiled):
    """The ``Lookup`` protocol for reading only: ``open`` and ``extend`` raise StoreError."""

    num_evicted_tokens = 0

    def __init__(self, arrays: Sorted, *, num_tokens: int) -> None:
        super().__init__()
        self._arrays = arrays
        addresses.tell([(addresses.SORTED, arrays)], self.parts)
        self.num_tokens = num_tokens

    @property
    def memory_bytes(self) -> int:
        """Bytes of address space the arrays span; of a memory-mapped corpus only what is read is resident."""
        return sum(array.nbytes for array in self._arrays)

    def open(self, tail: Tokens = EMPTY) -> NoReturn:
        """A frozen store takes nothing in."""
        raise StoreError("want a store that grows, got a frozen corpus: it takes nothing in")

    def extend(self, document: object, tokens: Tokens) -> NoReturn:
        """A frozen store takes nothing in."""
        self.open()

    def close(self, document: object) -> None:
        """Nothing to do: there are no documents."""


def separated(documents: list[Tokens]) -> Tokens:
    """``documents``, none of them empty, as one array: a SEPARATOR before the first and after each."""
    parts = [np.array([SEPARATOR], np.int32)]
    for document in documents:
        parts += [document, parts[0]]
    return np.concatenate(parts)


def sorted_order(tokens: Tokens) -> Tokens:
    """The ``order`` of ``tokens`` (see ``suffix_array``), sorted in memory."""
    order = np.empty(tokens.size, np.int32)
    order = order[: followed(tokens, order)]
    sort(tokens, order)
    return order


def heads_of(counts: npt.NDArray[np.int64]) -> Tokens:
    """``heads`` from how many positions of ``order`` hold each token, int64 [vocabulary]."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts))).astype(np.int32)
