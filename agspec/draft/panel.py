"""What all sources propose for one row in one step, side by side in flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agspec.draft.caps import MAX_DRAFT
from agspec.draft.lookup import Candidate, Slot
from agspec.draft.names import SOURCE_NAMES, SourceName

NUM_SOURCES = len(SOURCE_NAMES)


class Board(NamedTuple):
    """The arrays of a Panel, for compiled code.

    ``tokens``, ``counts``, ``hits`` int32, ``probs`` (the store's), ``chances`` (the odds') float64, ``regions`` int8,
    all [NUM_SOURCES, MAX_DRAFT]; ``sizes``, ``lengths`` (of the match), ``kept`` (tokens the odds leave) int64
    [NUM_SOURCES]; ``merits`` float64 [MAX_DRAFT]: of the chosen candidate, see ``budget``. ``moment`` int64 [4]: the
    last token, the one before it, how the row's last candidates fared, role.
    """

    tokens: npt.NDArray[np.int32]
    probs: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int32]
    hits: npt.NDArray[np.int32]
    regions: npt.NDArray[np.int8]
    sizes: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    moment: npt.NDArray[np.int64]
    chances: npt.NDArray[np.float64]
    kept: npt.NDArray[np.int64]
    merits: npt.NDArray[np.float64]


class Panel:
    """Candidates by source, the moment they were made at, and what they were judged: ``board``.

    ``slots``: its rows, by source, for lookups to write in.
    """

    def __init__(self) -> None:
        shape = (NUM_SOURCES, MAX_DRAFT)
        self.board = Board(
            np.zeros(shape, np.int32), np.zeros(shape), np.zeros(shape, np.int32), np.zeros(shape, np.int32),
            np.zeros(shape, np.int8), np.zeros(NUM_SOURCES, np.int64), np.zeros(NUM_SOURCES, np.int64),
            np.zeros(4, np.int64), np.zeros(shape), np.zeros(NUM_SOURCES, np.int64), np.zeros(MAX_DRAFT),
        )  # fmt: skip
        self.slots = [Slot(*rows) for rows in zip(*self.board[:4], strict=True)]

    def clear(self) -> None:
        """No candidates."""
        self.board.sizes[:] = 0

    def put(self, source: int, n: int, match_length: int) -> None:
        """The slot of ``source`` holds ``n`` tokens."""
        self.board.sizes[source] = n
        self.board.lengths[source] = match_length

    def candidates(self) -> list[tuple[SourceName, Candidate]]:
        """What the slots hold, by source."""
        found = zip(SOURCE_NAMES, self.slots, self.board.sizes.tolist(), self.board.lengths.tolist(), strict=True)
        return [(name, slot.candidate(n, length)) for name, slot, n, length in found if n]
