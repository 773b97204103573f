"""A draft, and what became of drafts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from agspec.draft.names import SourceName
from agspec.tokens import Tokens


@dataclass(frozen=True)
class Draft:
    """Tokens to verify, int32 [n], and where they come from."""

    tokens: Tokens
    source: SourceName
    match_length: int
    expected: float
    role: str


@dataclass
class Counts:
    """What became of the drafts, in vLLM's words; ``by_source`` and ``by_role`` sort the same counts.

    ``num_expected_tokens``: accepted tokens that the odds foretold; where they drift apart, it is time to recalibrate.
    """

    num_drafts: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    num_expected_tokens: float = 0.0
    num_lookups: Counter[str] = field(default_factory=Counter)
    num_hits: Counter[str] = field(default_factory=Counter)
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
            row.update(num_drafts=1, num_draft_tokens=drafted, num_accepted_tokens=accepted)
        self.num_expected_tokens += draft.expected
        self.drafted_at.update(range(drafted))
        self.accepted_at.update(range(accepted))

    def positions(self, at: Counter[int]) -> list[int]:
        """``accepted_at`` or ``drafted_at`` as a list, first position first."""
        return [at[k] for k in range(len(self.drafted_at))]
