"""What a replay counted, the time a cost model gives it, and the row of a report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agspec.draft.cost import StepCost


@dataclass
class Tally:
    """Counts of one method over one trace.

    ``num_steps`` counts each row of each step, so that ``num_tokens / num_steps`` is the mean acceptance length;
    ``step_shapes`` counts steps of the engine by (rows, drafted tokens verified, all rows together). ``propose_us``:
    microseconds of each proposal, all rows together. ``drift``: accepted tokens over those the method foretold.
    """

    num_steps: int = 0
    num_tokens: int = 0
    num_drafts: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    step_shapes: Counter[tuple[int, int]] = field(default_factory=Counter)
    by_role: dict[str, Counter[str]] = field(default_factory=dict)
    by_source: dict[str, dict[str, int]] = field(default_factory=dict)
    accepted_at: Counter[int] = field(default_factory=Counter)
    drafted_at: Counter[int] = field(default_factory=Counter)
    propose_us: list[float] = field(default_factory=list)
    drift: float | None = None

    def add_row(self, *, drafted: int, accepted: int) -> None:
        """One row of a step: ``drafted`` tokens were verified, the first ``accepted`` of them were right."""
        self.num_steps += 1
        self.num_drafts += drafted > 0
        self.num_draft_tokens += drafted
        self.num_accepted_tokens += accepted
        self.drafted_at.update(range(drafted))
        self.accepted_at.update(range(accepted))

    def add_call(self, role: str, counts: Counter[str]) -> None:
        """A call is over; ``counts`` are its own, by the names they have here."""
        self.num_tokens += counts["num_tokens"]
        self.by_role.setdefault(role, Counter()).update(counts)

    @property
    def mean_acceptance_length(self) -> float:
        """Tokens a step and row, the bonus token included."""
        return self.num_tokens / self.num_steps if self.num_steps else 0.0

    @property
    def mean_batch(self) -> float:
        """Rows a step of the engine; fewer than the batch where sessions ran out."""
        num_engine_steps = self.step_shapes.total()
        return self.num_steps / num_engine_steps if num_engine_steps else 0.0

    def time(self, cost: StepCost) -> float:
        """What all steps take together, in the unit of ``cost``."""
        return sum(n * cost.step(rows, drafted) for (rows, drafted), n in self.step_shapes.items())

    def speedup(self, cost: StepCost, none: Tally) -> float:
        """Over ``none``, the same calls and batch without drafts."""
        time = self.time(cost)
        return none.time(cost) / time if time else 0.0

    def row(self, cost: StepCost, none: Tally) -> dict[str, Any]:
        """The figures of a report's row; ``model_time`` and ``model_time_none`` are in the unit of ``cost``."""
        p50, p99 = np.percentile(self.propose_us, [50, 99]) if self.propose_us else (0.0, 0.0)
        return {
            "mean_batch": self.mean_batch,
            "num_steps": self.num_steps,
            "num_tokens": self.num_tokens,
            "num_drafts": self.num_drafts,
            "num_draft_tokens": self.num_draft_tokens,
            "num_accepted_tokens": self.num_accepted_tokens,
            "mean_acceptance_length": self.mean_acceptance_length,
            "by_source": self.by_source,
            "by_role": {role: dict(counts) for role, counts in self.by_role.items()},
            "accepted_at": [self.accepted_at[k] for k in range(len(self.drafted_at))],
            "drafted_at": [self.drafted_at[k] for k in range(len(self.drafted_at))],
            "drift": self.drift,
            "propose_us": {"p50": float(p50), "p99": float(p99)},
            "model_time": self.time(cost),
            "model_time_none": none.time(cost),
            "speedup": self.speedup(cost, none),
        }
