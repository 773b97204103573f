"""What copying N tokens in one forward costs, in decode steps: measured points, straight between them in logarithms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

PAPER = ((8, 6.8), (512, 303.0))
"""(tokens, times faster than decoding them): the two points of arXiv 2604.18170's abstract."""


@dataclass(frozen=True)
class Kernel:
    """``points``: (tokens, how many times faster than as many decode steps), tokens ascending."""

    points: tuple[tuple[int, float], ...] = PAPER

    def steps(self, tokens: float) -> float:
        """Decode steps that a copy of so many tokens takes; the last slope goes on beyond the points."""
        x, y = np.log(np.array(self.points, float)).T
        at = np.log(max(tokens, 1.0))
        if len(self.points) == 1:
            return float(tokens / np.exp(y[0]))
        i = int(np.clip(np.searchsorted(x, at), 1, x.size - 1))
        ratio = y[i - 1] + (y[i] - y[i - 1]) / (x[i] - x[i - 1]) * (at - x[i - 1])
        return float(tokens / np.exp(ratio))
