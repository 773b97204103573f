"""What a step of the engine costs, by batch size and drafted tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StepCost:
    """Time of a decode step, measured at some batch sizes and drafted tokens a row, straight lines between.

    ``batches`` and ``drafted`` (drafted tokens a row, the mean of the step) ascend, ``drafted`` from 0; ``times`` has a
    row for each batch size, in ms or in any unit, ascending in both directions. Beyond the last knots the last slope
    goes on; below the first batch size its row holds.
    """

    batches: tuple[int, ...]
    drafted: tuple[float, ...]
    times: tuple[tuple[float, ...], ...]

    @classmethod
    def from_ratio(cls, ratio: float) -> StepCost:
        """A step that costs, for each row, 1 + ratio x (1 + its drafted tokens), whatever the batch."""
        line = (1 + ratio, 1 + 2 * ratio)
        return cls((1, 2), (0.0, 1.0), (line, (2 * line[0], 2 * line[1])))

    def step(self, rows: int, drafted: float) -> float:
        """Time of a step of ``rows`` rows that verifies ``drafted`` drafted tokens, all rows together."""
        mean = drafted / rows
        if len(self.batches) == 1 or rows <= self.batches[0]:
            return _line(self.drafted, self.times[0], mean)
        i = min(bisect_right(self.batches, rows), len(self.batches) - 1)
        low, high = self.batches[i - 1], self.batches[i]
        near, far = _line(self.drafted, self.times[i - 1], mean), _line(self.drafted, self.times[i], mean)
        return near + (far - near) * (rows - low) / (high - low)

    def share(self, rows: int, drafted: float) -> float:
        """Cost of one more drafted token over that of a step without drafts, at ``rows`` rows."""
        return (self.step(rows, drafted + 1) - self.step(rows, drafted)) / self.step(rows, 0)


def _line(knots: Sequence[float], values: Sequence[float], x: float) -> float:
    i = min(max(bisect_right(knots, x), 1), len(knots) - 1)
    low, high = knots[i - 1], knots[i]
    return values[i - 1] + (values[i] - values[i - 1]) * (x - low) / (high - low)
