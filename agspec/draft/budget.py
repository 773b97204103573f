"""What a drafted token must promise to be worth verifying, and which tokens of a batch do.

A step of B rows costs more with each drafted token, by the engine's StepCost. Time spent on one is lost to plain
decoding, so it must bring more than the same time brings anyway. What that is, is a blend of the engine's own pace of
late and of the draft's: where drafting goes well, the next step will bring much too, and a doubtful token can wait.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agspec.draft.caps import MAX_DRAFT
from agspec.draft.cost import StepCost
from agspec.draft.kernels import jit

Floats = npt.NDArray[np.float64]

CAUTION = 1.3
"""Chances of tokens that were chosen for being likely are too high by about this much."""
UNPROVEN = 0.6
"""What is asked on top in a large batch of odds that were not put to the test yet: of many chances the best are bought,
and a step that drafts at all may cost much more. A lone row loses little by a wrong token."""
PROVEN = 200.0
"""Tokens by which half of that is gone: each that comes tests the candidates there were for it, drafted or not."""
OWN = 0.5
"""Weight of the draft's own pace against the engine's."""
MEMORY = 0.998
"""Weight of the past at each step: about 500 steps are remembered."""
LOWEST = 0.01
"""No token whose chance is less is worth a thought."""
BATCHES = 64
"""Batch sizes whose cost curves are kept."""


@jit
def merits(chances, n, share, rate, fixed, out):
    """Fill ``out[:n]``: tokens each drafted token promises, over those the same cost brings anyway; not ascending.

    ``share``: cost of a drafted token over a row's plain step. ``rate``: tokens for the cost of a row's plain step.
    ``fixed``: the bare chance that the draft gets so far.
    """
    survival, expected, least = 1.0, 0.0, np.inf
    for k in range(n):
        survival *= chances[k]
        own = (1.0 + expected) / (1.0 + share * k)
        merit = survival if fixed else survival / (OWN * own + (1.0 - OWN) * rate)
        least = min(least, merit)
        out[k] = least
        expected += survival


@jit
def best(chances, kept, share, rate, fixed, floor, out):
    """(source whose candidate promises most over ``floor``, how many of its tokens); its merits in ``out``."""
    merit = np.empty(chances.shape[1])
    choice, length, most = -1, 0, 0.0
    for s in range(kept.size):
        merits(chances[s], kept[s], share, rate, fixed, merit)
        n, value = 0, 0.0
        while n < kept[s] and merit[n] >= floor:
            value += merit[n] - floor
            n += 1
        if value > most:
            choice, length, most = s, n, value
            out[:n] = merit[:n]
    return choice, length


@jit
def afford(merits, sizes, caution, extra, taken):
    """Fill ``taken[i]``: how many of the first ``sizes[0]``, next ``sizes[1]`` ... merits pay together.

    Best first, up to where merits less ``caution`` x ``extra`` (cost of 0 ... n tokens) are most.
    """
    order = np.argsort(-merits, kind="mergesort")
    gain, most, number = 0.0, 0.0, 0
    for i in range(order.size):
        gain += merits[order[i]]
        value = gain - caution * extra[i + 1]
        if value > most:
            most, number = value, i + 1
    ends = np.cumsum(sizes)
    for i in range(number):
        taken[np.searchsorted(ends, order[i], side="right")] += 1


class Budget:
    """The engine's pace, and what a batch may spend.

    ``caution`` scales what a token must promise.
    """

    def __init__(self, cost: StepCost, *, caution: float = CAUTION) -> None:
        self._cost = cost
        self.caution = caution
        self._tokens, self._spent = 200.0, 100.0
        self._extra: dict[int, Floats] = {}
        self._shares: dict[int, float] = {}
        self._num_drafted = 0
        self._num_seen = 0

    @property
    def rate(self) -> float:
        """Tokens for the cost of a row's plain step, of late."""
        return self._tokens / self._spent

    def observe(self, *, rows: int, num_new: int, num_draft: int) -> None:
        """A step of ``rows`` rows brought ``num_new`` tokens after ``num_draft`` drafted ones."""
        spent = rows + float(self.extra(rows)[num_draft])
        self._tokens = self._tokens * MEMORY + num_new
        self._spent = self._spent * MEMORY + spent
        self._num_drafted = num_draft
        self._num_seen += num_new
        self._shares.clear()

    def extra(self, rows: int) -> Floats:
        """Cost of 0, 1 ... drafted tokens, up to MAX_DRAFT a row, in a step of ``rows`` rows; in plain steps of a row.

        float64 [MAX_DRAFT * rows + 1].
        """
        curve = self._extra.get(rows)
        if curve is None:
            if len(self._extra) >= BATCHES:
                self._extra.clear()
            times = self._cost.curve(rows, MAX_DRAFT * rows)
            curve = self._extra[rows] = (times / times[0] - 1.0) * rows
        return curve

    def share(self, rows: int) -> float:
        """Cost of one more drafted token over a row's plain step, after as many as the last step had."""
        share = self._shares.get(rows)
        if share is None:
            at = min(self._num_drafted, MAX_DRAFT * rows - 1)
            curve = self.extra(rows)
            share = self._shares[rows] = float(curve[at + 1] - curve[at])
        return share

    def care(self, rows: int) -> float:
        """``caution``, and what odds are unproven by in a batch of ``rows``."""
        return self.caution * (1 + UNPROVEN * (1 - 1 / rows) * PROVEN / (PROVEN + self._num_seen))

    def floor(self, share: float, rows: int) -> float:
        """Least merit that pays in a batch of ``rows``."""
        return max(LOWEST, self.care(rows) * share)

    def afford(self, offers: list[Floats], *, rows: int) -> list[int]:
        """How many tokens of each offer (merits, descending) pay in one step of ``rows`` rows, all together.

        Best first, up to where merits less costs are most: costs need not be convex.
        """
        sizes = np.array([offer.size for offer in offers])
        merits = offers[0] if len(offers) == 1 else np.concatenate(offers)
        taken = np.zeros(sizes.size, np.int64)
        afford(merits, sizes, self.care(rows), self.extra(rows), taken)
        counts: list[int] = taken.tolist()
        return counts
