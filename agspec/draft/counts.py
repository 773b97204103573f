"""A draft, and what became of drafts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from agspec.draft.kernels import jit
from agspec.draft.names import SOURCE_NAMES, SourceName
from agspec.tokens import Tokens

BINS = 10
"""Tenths of chance by which foretold and right are compared."""
SETTLED = 200
"""Accepted tokens that must have been foretold before ``Counts.drift`` says anything."""


@jit
def _test(chances, accepted, reliability):
    """Put chances to the test, see ``Counts.reliability``; (sum of squared errors, accepted tokens foretold)."""
    total, survival, expected = 0.0, 1.0, 0.0
    for chance in chances:
        survival *= chance
        expected += survival
    for k in range(min(accepted + 1, chances.size)):
        right = 1.0 if k < accepted else 0.0
        row = min(int(chances[k] * BINS), BINS - 1)
        reliability[row, 0] += 1.0
        reliability[row, 1] += chances[k]
        reliability[row, 2] += right
        total += (right - chances[k]) ** 2
    return total, expected


@dataclass(frozen=True, eq=False)
class Draft:
    """Tokens to verify, int32 [n], and where they come from; ``chances`` float64 [n], each given those before it."""

    tokens: Tokens
    source: SourceName
    match_length: int
    chances: npt.NDArray[np.float64]
    role: str


@dataclass
class Counts:
    """What became of the drafts, in vLLM's words; ``by_source`` and ``by_role`` sort the same counts.

    ``looked``: by source, how often it was asked and how often it knew something.
    ``expected_of``: by role, accepted tokens that the odds foretold, see ``drift``.
    ``reliability`` float64 [BINS, 3]: of the tokens whose chance lay in a tenth and that were put to the test (those
    after a wrong one never are), number, sum of chances, number right; ``squared_error``: of those chances, summed.
    """

    num_drafts: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    expected_of: dict[str, float] = field(default_factory=dict)
    squared_error: float = 0.0
    reliability: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((BINS, 3)))
    looked: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, len(SOURCE_NAMES)), np.int64))
    by_source: dict[str, Counter[str]] = field(default_factory=dict)
    by_role: dict[str, Counter[str]] = field(default_factory=dict)
    accepted_at: Counter[int] = field(default_factory=Counter)
    drafted_at: Counter[int] = field(default_factory=Counter)

    def add(self, draft: Draft, accepted: int) -> None:
        """Count a verified draft."""
        drafted = int(draft.tokens.size)
        self.num_drafts += 1
        self.num_draft_tokens += drafted
        self.num_accepted_tokens += accepted
        for table, key in ((self.by_source, draft.source), (self.by_role, draft.role)):
            row = table.setdefault(key, Counter())
            row["num_drafts"] += 1
            row["num_draft_tokens"] += drafted
            row["num_accepted_tokens"] += accepted
        error, expected = _test(draft.chances, accepted, self.reliability)
        self.squared_error += error
        self.expected_of[draft.role] = self.expected_of.get(draft.role, 0.0) + expected
        self.drafted_at.update(range(drafted))
        self.accepted_at.update(range(accepted))

    @property
    def num_lookups(self) -> Counter[str]:
        """How often each source was asked."""
        return +Counter(dict(zip(SOURCE_NAMES, self.looked[0].tolist(), strict=True)))

    @property
    def num_hits(self) -> Counter[str]:
        """How often each source knew something."""
        return +Counter(dict(zip(SOURCE_NAMES, self.looked[1].tolist(), strict=True)))

    @property
    def num_expected_tokens(self) -> float:
        """Accepted tokens that the odds foretold, all roles together."""
        return sum(self.expected_of.values())

    def positions(self, at: Counter[int]) -> list[int]:
        """``accepted_at`` or ``drafted_at`` as a list, first position first."""
        return [at[k] for k in range(len(self.drafted_at))]

    def drift(self, role: str | None = None) -> float | None:
        """Accepted tokens over those the odds foretold, of one role or of all; None where too few were foretold.

        1 means that the odds hold; a little less is usual, for drafts are chosen for promising much. Far less, and they
        go further than pays; more, and they stop too early: it is time to calibrate again.
        """
        expected = self.num_expected_tokens if role is None else self.expected_of.get(role, 0.0)
        if expected < SETTLED:
            return None
        accepted = self.num_accepted_tokens if role is None else self.by_role[role]["num_accepted_tokens"]
        return accepted / expected
