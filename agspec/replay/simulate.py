"""Replay recorded outputs against drafting methods: teacher-forced, deterministic, no engine.

The first token of a call comes from the prefill, so it is a step without a draft. Each further step verifies what
the method drafted after the step before, accepts the longest right prefix and adds one token, as vLLM does. The
end-of-turn token is part of the output, and the method drafts once more after it, as the engine lets it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from agspec.draft.novel import common_prefix
from agspec.replay.methods import Method
from agspec.replay.plan import PlannedCall
from agspec.tokens import Tokens

RATIO_AWARE = ("agspec", "agspec-suffix")
"""Methods that may use the cost ratio they are told, and are replayed once for each."""


@dataclass
class Tally:
    """Counts of one method over one trace."""

    num_steps: int = 0
    num_tokens: int = 0
    num_drafts: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    by_role: dict[str, Counter[str]] = field(default_factory=dict)
    by_source: dict[str, dict[str, int]] = field(default_factory=dict)
    accepted_at: Counter[int] = field(default_factory=Counter)
    drafted_at: Counter[int] = field(default_factory=Counter)
    propose_us: list[float] = field(default_factory=list)

    @property
    def mean_acceptance_length(self) -> float:
        """Tokens a step, the bonus token included."""
        return self.num_tokens / self.num_steps if self.num_steps else 0.0

    def speedup(self, ratio: float) -> float:
        """Over one token a step, where a step costs a + b x (1 + drafted tokens) and ratio = b / a."""
        cost = self.num_steps * (1 + ratio) + ratio * self.num_draft_tokens
        return self.num_tokens * (1 + ratio) / cost if cost else 0.0


def replay(method: Method, calls: Iterable[PlannedCall], *, max_draft: int, log: list[Tokens] | None = None) -> Tally:
    """Run ``method`` over ``calls``; ``log`` gets each draft that was verified."""
    tally = Tally()
    for number, call in enumerate(calls):
        role = tally.by_role.setdefault(call.role, Counter())
        before = Counter(vars(tally))
        sequence = np.concatenate((call.prompt, call.tape))
        end, total = int(call.prompt.size) + 1, int(sequence.size)
        method.start(str(number), call)
        tally.num_steps += 1
        num_new = 1
        while end < total:
            started = time.perf_counter()
            draft = method.draft(sequence[:end], num_new, max_draft)
            tally.propose_us.append((time.perf_counter() - started) * 1e6)
            n = int(draft.size)
            if n:
                accepted = common_prefix(draft, sequence[end:])
                tally.num_drafts += 1
                tally.num_draft_tokens += n
                tally.num_accepted_tokens += accepted
                tally.drafted_at.update(range(n))
                tally.accepted_at.update(range(accepted))
                if log is not None:
                    log.append(draft)
            else:
                accepted = 0
            num_new = min(accepted + 1, total - end)
            end += num_new
            tally.num_steps += 1
        method.draft(sequence, num_new, max_draft)
        method.finish()
        tally.num_tokens += int(call.tape.size)
        for key in ("num_steps", "num_tokens", "num_draft_tokens", "num_accepted_tokens"):
            role[key] += getattr(tally, key) - before[key]
    if method.counts is not None:
        tally.by_source = {
            name: {**counts, "num_hits": method.counts.num_hits[name], "num_lookups": method.counts.num_lookups[name]}
            for name, counts in method.counts.by_source.items()
        }
    return tally
