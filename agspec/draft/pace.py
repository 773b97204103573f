"""What a drafted token must promise to be worth verifying."""

from __future__ import annotations

from dataclasses import dataclass

CAUTION = 1.8
"""Chances of tokens that were chosen for being likely are too high by about this much."""
MEMORY = 0.998
"""Weight of the past at each step: about 500 steps are remembered."""
HIGHEST, LOWEST = 0.9, 0.02


@dataclass
class Pace:
    """Tokens for the cost of a plain step, as it goes, and the least chance that pays.

    A step costs a + b x (1 + drafted tokens), ``cost_ratio`` = b / a. One more drafted token, accepted with chance p,
    brings p tokens for b: worth it while p exceeds b's share of a plain step times the tokens such a step's cost brings
    anyway (the marginal condition of tokens over cost). So the floor rises with cost, and where drafting goes well.
    """

    cost_ratio: float
    tokens: float = 200.0
    cost: float = 100.0

    def observe(self, *, num_new: int, num_draft: int) -> None:
        """A step brought ``num_new`` tokens after ``num_draft`` drafted ones."""
        share = self.cost_ratio / (1 + self.cost_ratio)
        self.tokens = self.tokens * MEMORY + num_new
        self.cost = self.cost * MEMORY + 1 + share * num_draft

    @property
    def floor(self) -> float:
        """Least chance of a token, given those before it, times theirs, that pays."""
        share = self.cost_ratio / (1 + self.cost_ratio)
        return min(HIGHEST, max(LOWEST, CAUTION * share * self.tokens / self.cost))
