"""What a replay cost, session by session."""

from __future__ import annotations

from collections.abc import Iterable

Counts = tuple[int, int, int, int]
"""Steps, tokens, drafted tokens, accepted tokens."""
BySession = dict[str, Counts]


def add(counts: BySession, session: str, more: Counts) -> None:
    """Add one call's counts."""
    steps, tokens, drafted, accepted = counts.get(session, (0, 0, 0, 0))
    counts[session] = (steps + more[0], tokens + more[1], drafted + more[2], accepted + more[3])


def total(counts: Iterable[Counts]) -> Counts:
    """The sum."""
    steps, tokens, drafted, accepted = (sum(column) for column in zip((0, 0, 0, 0), *counts, strict=True))
    return steps, tokens, drafted, accepted


def speedup(counts: Counts, ratio: float) -> float:
    """Over one token a step, where a step costs a + b x (1 + drafted tokens) and ratio = b / a."""
    steps, tokens, drafted, _ = counts
    cost = steps * (1 + ratio) + ratio * drafted
    return tokens * (1 + ratio) / cost if cost else 0.0
