"""Whether a file is better written as a program or whole, told before anything is written, from what steps cost.

What both ways must write, the new text, costs the same in both. Whole, all of the old text is written too, drafted; as
a program its lines are prefilled once more with their numbers before them, and once where they are copied, and some
tags are decoded. Text that comes in place of old lines costs a program nothing but its tags: one long ``<gen>`` is
plain generation.
"""

from __future__ import annotations

from agspec.draft.cost import StepCost
from agspec.serve.edits.body import Way

COPIES = 3
"""Of a program: 2.9 in the mean over 400 edits of files in a git history."""
TAG = 11
"""Tokens of a copy's tag and the ``<gen>`` beside it, decoded one by one."""
ACCEPTED = 0.3
"""Share of the longest draft that is accepted where a file is written again (benchmarks.copies)."""


class Choice:
    """``cost``: of steps, in any unit; ``max_draft``: tokens drafted a step at most."""

    def __init__(self, cost: StepCost, max_draft: int) -> None:
        self._cost = cost
        self._max_draft = max_draft

    def way(self, tokens: int, *, numbering: int) -> Way:
        """``tokens``: of the file; ``numbering``: how many more the prompt has where a program is asked for."""
        return "copy" if self.program(tokens, numbering) < self.whole(tokens) else "whole"

    def whole(self, tokens: int) -> float:
        """Cost of writing so many tokens again."""
        return tokens / (1 + ACCEPTED * self._max_draft) * self._cost.step(1, self._max_draft)

    def program(self, tokens: int, numbering: int) -> float:
        """Cost of copying them."""
        step = self._cost.step(1, 0)
        splices = COPIES * self._cost.step(1, tokens / COPIES)
        return COPIES * TAG * step + splices + max(0.0, self._cost.step(1, max(0, numbering)) - step)
