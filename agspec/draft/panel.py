"""What all sources propose for one row in one step, side by side in flat arrays."""

from __future__ import annotations

import numpy as np

from agspec.draft.caps import MAX_DRAFT
from agspec.draft.lookup import Candidate
from agspec.draft.names import SOURCE_NAMES, SourceName

NUM_SOURCES = len(SOURCE_NAMES)


class Panel:
    """Candidates by source, and the moment they were made at.

    ``tokens``, ``counts``, ``hits`` int32, ``probs`` float64, ``regions`` int8, all [NUM_SOURCES, MAX_DRAFT];
    ``sizes``, ``lengths`` (of the match) int64 [NUM_SOURCES]. ``moment`` int64 [4]: the last token, the one before it,
    how the row's last candidates fared, role.
    """

    def __init__(self) -> None:
        shape = (NUM_SOURCES, MAX_DRAFT)
        self.tokens = np.zeros(shape, np.int32)
        self.probs = np.zeros(shape)
        self.counts = np.zeros(shape, np.int32)
        self.hits = np.zeros(shape, np.int32)
        self.regions = np.zeros(shape, np.int8)
        self.sizes = np.zeros(NUM_SOURCES, np.int64)
        self.lengths = np.zeros(NUM_SOURCES, np.int64)
        self.moment = np.zeros(4, np.int64)

    def clear(self) -> None:
        """No candidates."""
        self.sizes[:] = 0

    def put(self, source: int, candidate: Candidate) -> None:
        """The candidate of ``source``."""
        n = int(candidate.tokens.size)
        self.tokens[source, :n] = candidate.tokens
        self.probs[source, :n] = candidate.probs
        self.counts[source, :n] = candidate.counts
        self.hits[source, :n] = candidate.hits
        self.sizes[source] = n
        self.lengths[source] = candidate.match_length

    def candidates(self) -> list[tuple[SourceName, Candidate]]:
        """What was put, by source."""
        return [
            (
                name,
                Candidate(
                    self.tokens[i, :n].copy(), self.probs[i, :n].copy(), int(self.lengths[i]),
                    self.counts[i, :n].copy(), self.hits[i, :n].copy(),
                ),
            )
            for i, name in enumerate(SOURCE_NAMES)
            if (n := int(self.sizes[i]))
        ]  # fmt: skip
