"""The settings that baselines may be tuned over, and the choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.table.counts import BySession, speedup, total
from benchmarks.table.texts import Values

DEFAULTS: dict[str, dict[str, float]] = {
    "ngram": {"ngram_min": 2, "ngram_max": 5, "ngram_length": 5, "max_draft": 64},
    "suffix": {"suffix_depth": 24, "suffix_factor": 1, "suffix_min_prob": 0.1, "max_draft": 64},
    "sam": {"sam_length": 40, "max_draft": 64},
    "rest": {"rest_length": 16, "max_draft": 64},
}
"""vLLM's defaults for suffix, agspec's for the others; rest has none, so its longest draft."""

_SUFFIX = (
    # depth, longest draft, factors, least probabilities
    (24, 64, (1,), (0.1,)),
    (24, 64, (1, 2, 4), (0.3, 0.5, 0.7)),
    (24, 16, (1, 2), (0.3, 0.5)),
    (64, 64, (1, 2, 4), (0.3, 0.5)),
    (64, 64, (2,), (0.7,)),
)
"""A longest draft of 64 means as long as the tree is deep. Left out of the full grid (both depths, both lengths,
factors 1, 2, 4, probabilities 0.1, 0.3, 0.5, 0.7) is what brought nothing in a trial: on aider and on swe-agent, raw
wire, the best of all 48 at each ratio was one of these, or within 0.3% of one."""

GRIDS: dict[str, list[dict[str, float]]] = {
    "ngram": [
        {"ngram_min": shortest, "ngram_max": longest, "ngram_length": length, "max_draft": 64}
        for shortest in (2, 3)
        for longest in (5, 8)
        for length in (3, 5, 10)
    ],
    "suffix": [
        {"suffix_depth": depth, "suffix_factor": factor, "suffix_min_prob": least, "max_draft": length}
        for depth, length, factors, probabilities in _SUFFIX
        for factor in factors
        for least in probabilities
    ],
    "sam": [{"sam_length": length, "max_draft": 64} for length in (4, 8, 16, 40)],
    "rest": [{"rest_length": length, "max_draft": 64} for length in (4, 8, 16)],
}
"""Every setting tried; ``text_of`` tells which of them one sweep replays."""


def text_of(method: str, values: Values) -> str:
    """Which of sweep.TEXTS a setting of ``method`` drafts from."""
    return f"suffix {int(values['suffix_depth'])}" if method == "suffix" else method


def choose(grid: Sequence[Values], measured: Sequence[BySession], sessions: Iterable[str], ratio: float) -> Values:
    """The setting of ``grid`` that was fastest over ``sessions`` at ``ratio``; the first of equals."""
    kept = list(sessions)

    def fared(counts: Mapping[str, tuple[int, int, int, int]]) -> float:
        return speedup(total(counts[session] for session in kept), ratio)

    best = max(range(len(grid)), key=lambda i: fared(measured[i]))
    return grid[best]


def told(values: Values) -> str:
    """A setting in few words, without the method's name in its keys."""
    return " ".join(f"{key.partition('_')[2]}={value:g}" for key, value in values.items() if key != "max_draft") + (
        f" longest={values['max_draft']:g}" if "suffix_depth" in values else ""
    )
