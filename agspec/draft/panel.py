"""What all sources propose for one row in one step, side by side in flat arrays."""

from __future__ import annotations

import numpy as np

from agspec.draft.caps import MAX_DRAFT
from agspec.draft.lookup import Candidate, Slot
from agspec.draft.names import SOURCE_NAMES, SourceName

NUM_SOURCES = len(SOURCE_NAMES)


class Panel:
    """Candidates by source, and the moment they were made at.

    ``tokens``, ``counts``, ``hits`` int32, ``probs`` float64, ``regions`` int8, all [NUM_SOURCES, MAX_DRAFT];
    ``sizes``, ``lengths`` (of the match) int64 [NUM_SOURCES]. ``moment`` int64 [4]: the last token, the one before it,
    how the row's last candidates fared, role. ``slots``: rows of the first four, by source, for lookups to write in.
    """

    def __init__(self) -> None:
        shape = (NUM_SOURCES, MAX_DRAFT)
        self.tokens = np.zeros(shape, np.int32)
        self.probs = np.zeros(shape)
        self.counts = np.zeros(shape, np.int32)
        self.hits = np.zeros(shape, np.int32)
        self.slots = [Slot(*rows) for rows in zip(self.tokens, self.probs, self.counts, self.hits, strict=True)]
        self.regions = np.zeros(shape, np.int8)
        self.sizes = np.zeros(NUM_SOURCES, np.int64)
        self.lengths = np.zeros(NUM_SOURCES, np.int64)
        self.moment = np.zeros(4, np.int64)

    def clear(self) -> None:
        """No candidates."""
        self.sizes[:] = 0

    def put(self, source: int, n: int, match_length: int) -> None:
        """The slot of ``source`` holds ``n`` tokens."""
        self.sizes[source] = n
        self.lengths[source] = match_length

    def candidates(self) -> list[tuple[SourceName, Candidate]]:
        """What the slots hold, by source."""
        found = zip(SOURCE_NAMES, self.slots, self.sizes.tolist(), self.lengths.tolist(), strict=True)
        return [(name, slot.candidate(n, length)) for name, slot, n, length in found if n]
