"""What a step of the engine costs, by batch size and drafted tokens."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


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
        return float(self._times(rows, np.array([drafted]))[0])

    def curve(self, rows: int, n: int) -> Floats:
        """``step(rows, 0)`` ... ``step(rows, n)``, float64 [n + 1]."""
        return self._times(rows, np.arange(n + 1, dtype=np.float64))

    def share(self, rows: int, drafted: float) -> float:
        """Cost of one more drafted token over that of a step without drafts, at ``rows`` rows."""
        return (self.step(rows, drafted + 1) - self.step(rows, drafted)) / self.step(rows, 0)

    def _times(self, rows: int, drafted: Floats) -> Floats:
        times = np.array(self.times[0])
        if len(self.batches) > 1 and rows > self.batches[0]:
            i = min(bisect_right(self.batches, rows), len(self.batches) - 1)
            low, high = self.batches[i - 1], self.batches[i]
            near, far = np.array(self.times[i - 1]), np.array(self.times[i])
            times = near + (far - near) * (rows - low) / (high - low)
        knots = np.array(self.drafted)
        mean = drafted / rows
        at = np.clip(np.searchsorted(knots, mean, side="right"), 1, knots.size - 1)
        slope = (times[at] - times[at - 1]) / (knots[at] - knots[at - 1])
        found: Floats = times[at - 1] + slope * (mean - knots[at - 1])
        return found
