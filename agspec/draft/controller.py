"""Today's multiplier on the cap, from the accepted lengths of the last few drafts."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

WINDOW = 16
"""Drafts remembered."""
HIGHEST = 2.0
LOWEST = 0.5
REST = 2
"""Steps without a draft after WINDOW drafts of which nothing was accepted; doubles up to LONGEST_REST."""
LONGEST_REST = 32


@dataclass
class Controller:
    """Raises the multiplier while drafts are accepted whole, lowers it while they fail, rests when all fail.

    After a rest one draft probes; any accepted token ends the resting.
    """

    multiplier: float = 1.0
    _last: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=WINDOW))
    _rest: int = 0
    _next_rest: int = REST

    def observe(self, *, drafted: int, accepted: int) -> None:
        """Tell what became of a draft of ``drafted`` > 0 tokens."""
        self._last.append((drafted, accepted))
        if accepted == drafted:
            self.multiplier = min(HIGHEST, max(self.multiplier, LOWEST) * 1.25)
        elif not accepted:
            self.multiplier = max(LOWEST, self.multiplier * 0.9)
        if accepted:
            self._next_rest = REST
        elif len(self._last) == WINDOW and not any(a for _, a in self._last):
            self._rest = self._next_rest
            self._next_rest = min(LONGEST_REST, 2 * self._next_rest)

    def step(self) -> float:
        """The multiplier for this step; 0 while resting."""
        if self._rest:
            self._rest -= 1
            return 0.0
        return self.multiplier
