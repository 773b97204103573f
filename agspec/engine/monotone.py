"""Measured times -> times that ascend with batch size and drafted tokens, by the least change."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.float64]
"""float64 [batches, drafted]."""

ROUNDS = 1000
CLOSE = 1e-9
"""Rounds end when no value moved by more than this share of the largest."""


def ascending(table: Table) -> Table:
    """The table nearest to ``table`` (least squares) that ascends along both axes; an ascending one as it is.

    Dykstra's alternating projections: pool adjacent violators along one axis, then along the other, each time from
    where the other left off, with what the axis took away the last time put back.
    """
    found = np.array(table, np.float64)
    taken = [np.zeros_like(found), np.zeros_like(found)]
    for _ in range(ROUNDS):
        before = [found, *taken]
        for axis in (0, 1):
            start = found + taken[axis]
            found = np.apply_along_axis(_pool, axis, start)
            taken[axis] = start - found
        moved = max(np.abs(new - old).max() for new, old in zip([found, *taken], before, strict=True))
        if moved <= CLOSE * np.abs(found).max():
            break
    return np.maximum.accumulate(np.maximum.accumulate(found, axis=0), axis=1)


def _pool(values: Table) -> Table:
    """The nearest ascending sequence: neighbours that descend share their mean (pool adjacent violators)."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] > mean:
            mean = (means[-1] * sizes[-1] + mean * size) / (sizes[-1] + size)
            size += sizes.pop()
            means.pop()
        means.append(mean)
        sizes.append(size)
    return np.repeat(np.asarray(means, np.float64), sizes)
