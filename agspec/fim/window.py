"""What of a long file a prompt holds: token budgets, cut on line borders, and a left edge that moves in steps.

The edge depends on how long the text before the cursor is, rounded up to a step, and on text left of it alone: while
one types it stays where it is, so that the engine's prefix cache holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agspec.errors import InputError

PREFIX, SUFFIX, OTHERS = 1800, 800, 300
"""Tokens of the text before the cursor, after it, and of other files."""
SHARE = 0.7
"""The prefix's, of a smaller total less what other files have."""
CHARACTERS = 3
"""Of a token, from which the first guess of an edge is made; code has 3 to 4."""
STEPS = 4
"""Steps of the left edge that make a whole window."""

Count = Callable[[str], int]
"""Tokens of a text."""


@dataclass(frozen=True)
class Budget:
    """Tokens at most."""

    prefix: int = PREFIX
    suffix: int = SUFFIX
    others: int = OTHERS

    @classmethod
    def of(cls, total: int | None, *, others: bool) -> Budget:
        """``total`` tokens shared out; None, or more than the defaults: the defaults. Raises InputError below 8."""
        if total is not None and total < 8:
            raise InputError(f"window: want 8 tokens or more, got {total}")
        beside = OTHERS if others else 0
        if total is None or total >= PREFIX + SUFFIX + beside:
            return cls(others=beside)
        beside = min(beside, total // 8)
        prefix = round(SHARE * (total - beside))
        return cls(prefix, total - beside - prefix, beside)


@dataclass(frozen=True)
class Window:
    """``start``: character of the prefix at which the window begins; ``prefix`` and ``suffix``: what it holds."""

    start: int
    prefix: str
    suffix: str


def window(
    prefix: str, suffix: str, budget: Budget, count: Count, *, borders: Sequence[int] = (), closers: str = ""
) -> Window:
    """The window around the cursor.

    ``borders``: characters of the prefix at which a definition begins: an edge goes there rather than to any line.
    ``closers``: lines that close what stands open at the cursor, put after a suffix that is cut.
    """
    start = left_edge(prefix, budget.prefix, count, borders)
    kept = right_part(suffix, budget.suffix, count)
    if len(kept) < len(suffix) and closers:
        kept = right_part(suffix, max(0, budget.suffix - count(closers)), count) + closers
    return Window(start, prefix[start:], kept)


def left_edge(prefix: str, budget: int, count: Count, borders: Sequence[int] = ()) -> int:
    """Where the window begins; 0 while all fits."""
    if len(prefix) <= budget and count(prefix) <= budget:
        return 0
    step = max(1, budget * CHARACTERS // STEPS)
    over = len(prefix) - budget * CHARACTERS
    at = max(0, -(-over // step)) * step
    while True:
        start = _border(prefix, at, step, borders)
        if count(prefix[start:]) <= budget:
            return start
        at += step
        if at >= len(prefix):
            return _last_characters(prefix, budget, count)


def right_part(suffix: str, budget: int, count: Count) -> str:
    """The begin of ``suffix``, to a line's end where one is near."""
    if budget <= 0:
        return ""
    kept = suffix[: budget * 2 * CHARACTERS]
    if len(kept) == len(suffix) and count(kept) <= budget:
        return kept
    while count(kept) > budget:
        kept = kept[: max(1, len(kept) * min(9 * budget, 9 * count(kept)) // (10 * count(kept)))]
        if len(kept) == 1:
            break
    end = kept.rfind("\n")
    return kept[: end + 1] if end > 0 else kept


def _border(prefix: str, at: int, step: int, borders: Sequence[int]) -> int:
    """The first definition, else the first line, that begins within a step from ``at``; else ``at`` itself."""
    if at == 0:
        return 0
    for border in borders:
        if at <= border < at + step:
            return border
    line = prefix.find("\n", at - 1, at + step)
    return at if line < 0 else line + 1


def _last_characters(prefix: str, budget: int, count: Count) -> int:
    """Where a text of few lines, or of many tokens a character, is cut: on a character."""
    low, high = 0, len(prefix)
    while low < high:
        middle = (low + high) // 2
        if count(prefix[middle:]) <= budget:
            high = middle
        else:
            low = middle + 1
    return low
