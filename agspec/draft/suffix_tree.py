"""SuffixDecoding's tree (arctic-inference, arXiv 2411.04975) behind the lookup protocol; an optional extra."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from agspec.draft.lookup import Drafting, Found, Slot
from agspec.errors import MissingExtraError
from agspec.tokens import EMPTY, Tokens

try:
    from arctic_inference.suffix_decoding._C import SuffixTree
except ImportError as error:
    raise MissingExtraError("arctic-inference", "bench") from error

DEPTH = 64
"""Tokens of context and draft the tree holds."""
FACTOR = 8.0
"""Draft length allowed for each matched token; the policy cuts shorter."""
MEASURE_EVERY = 1 << 16
"""Tokens between two looks at the tree's memory, which walks it whole."""


class SuffixTreeLookup(Drafting):
    """One suffix tree; documents are its sequences, and at the budget the oldest are removed."""

    parts = None

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self.num_evicted_tokens = 0
        self.memory_bytes = 0
        self._tree = SuffixTree(DEPTH)
        self._sizes: OrderedDict[int, int] = OrderedDict()
        self._next = 0
        self._unmeasured = 0

    @property
    def num_tokens(self) -> int:
        """Tokens held."""
        return sum(self._sizes.values())

    def open(self, tail: Tokens = EMPTY) -> int:
        """See ``Lookup``; the tree has no uncounted text, so ``tail`` is counted."""
        document = self._next
        self._next += 1
        self._sizes[document] = 0
        if tail.size:
            self.extend(document, tail)
        return document

    def extend(self, document: int, tokens: Tokens) -> None:
        """See ``Lookup``."""
        if not tokens.size:
            return
        self._tree.extend_ndarray(document, tokens)
        self._sizes[document] = self._sizes.get(document, 0) + int(tokens.size)
        self._unmeasured += int(tokens.size)
        if self._unmeasured >= MEASURE_EVERY:
            self._unmeasured = 0
            self._evict(document)

    def close(self, document: int) -> None:
        """Nothing to do: a document stays until it is evicted."""

    def fill(self, context: Tokens, slot: Slot, *, limit: int, floor: float) -> Found:
        """See ``Lookup``; the tree does not say how often it has seen a token: once."""
        found = self._tree.speculate_ndarray(
            np.ascontiguousarray(context[-DEPTH:]), min(limit, DEPTH), FACTOR, 0.0, max(floor, 0.01), False
        )
        n = len(found.token_ids)
        if n:
            survival = np.asarray(found.probs, np.float64)
            slot.tokens[:n] = found.token_ids
            slot.probs[0] = survival[0]
            slot.probs[1:n] = survival[1:] / survival[:-1]
            slot.counts[:n] = slot.hits[:n] = 1
        return n, int(found.match_len)

    def _evict(self, newest: int) -> None:
        self.memory_bytes = int(self._tree.estimate_memory())
        while self.memory_bytes > self.budget_bytes and len(self._sizes) > 1:
            oldest = next(d for d in self._sizes if d != newest)
            self._tree.remove(oldest)
            self.num_evicted_tokens += self._sizes.pop(oldest)
            self.memory_bytes = int(self._tree.estimate_memory())
