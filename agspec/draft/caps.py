"""How far to draft: a table by role, and what applies where no table was fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_DRAFT = 128
"""vLLM 0.32 verifies at most this many drafted tokens a row (MAX_SPEC_LEN)."""
DEFAULT_COST_RATIO = 0.03
"""Cost of one more verified token over the fixed cost of a step, where nobody told."""


@dataclass(frozen=True)
class Limits:
    """One row of a CapTable.

    A draft holds at most ``min(cap, factor * match_length + offset)`` tokens, and ends where the product of the
    tokens' chances falls under ``floor``; None: under what the next token costs, see ``budget.Budget``.
    """

    cap: int = 48
    factor: float = 16.0
    offset: int = 2
    floor: float | None = None


@dataclass(frozen=True)
class CapTable:
    """Role -> limits; a role it does not name uses ``default``. ``caution``: see ``budget.CAUTION``."""

    default: Limits = Limits()
    roles: Mapping[str, Limits] = field(default_factory=dict)
    caution: float | None = None

    def limits(self, role: str) -> Limits:
        """The row of ``role``."""
        return self.roles.get(role, self.default)

    def longest(self, role: str, match_length: int) -> int:
        """Tokens worth drafting after a match of ``match_length`` tokens, multiplier 1."""
        row = self.limits(role)
        return max(0, min(row.cap, int(row.factor * match_length) + row.offset, MAX_DRAFT))
