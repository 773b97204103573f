"""Replay recorded outputs against drafting methods: teacher-forced, deterministic, no engine.

The first token of a call comes from the prefill, so it is a step without a draft. Each further step verifies what
the method drafted after the step before, accepts the longest right prefix and adds one token, as vLLM does. The
end-of-turn token is part of the output; whatever a method drafts after it meets more of the same, as on the engine's
forced tapes, and the method drafts once more when the call is over, as the engine lets it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agspec.draft.novel import common_prefix
from agspec.errors import MissingExtraError
from agspec.replay.corpus import corpus_told
from agspec.replay.environment import environment
from agspec.replay.methods import METHODS, Method
from agspec.replay.plan import PlannedCall, Planner
from agspec.replay.render import ToolWire
from agspec.replay.trace import Trace
from agspec.settings import Settings
from agspec.tokens import Tokenizer, Tokens

RATIO_AWARE = ("agspec", "agspec-suffix")
"""Methods that may use the cost ratio they are told, and are replayed once for each."""

CALL_COUNTS = ("num_steps", "num_tokens", "num_draft_tokens", "num_accepted_tokens")
"""What is counted call by call and role by role."""


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

    def row(self, *, trace: str, method: str, cost_ratio: float) -> dict[str, Any]:
        """The row of a report."""
        p50, p99 = np.percentile(self.propose_us, [50, 99]) if self.propose_us else (0.0, 0.0)
        return {
            "trace": trace,
            "method": method,
            "cost_ratio": cost_ratio,
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
            "propose_us": {"p50": float(p50), "p99": float(p99)},
            "speedup": self.speedup(cost_ratio),
        }


def replay(
    method: Method,
    calls: Iterable[PlannedCall],
    *,
    max_draft: int,
    context_limit: int | None = None,
    log: list[Tokens] | None = None,
    by_call: list[Counter[str]] | None = None,
) -> Tally:
    """Run ``method`` over ``calls``; drafts stay within ``context_limit`` tokens, ``log`` gets each of them.

    ``by_call`` gets the counts of each call, by the names that they have in the tally.
    """
    tally = Tally()

    def draft_after(end: int) -> Tokens:
        room = max_draft if context_limit is None else min(max_draft, context_limit - end - 1)
        draft = method.draft(sequence[:end], num_new, room)
        if log is not None and draft.size:
            log.append(draft)
        return draft

    for number, call in enumerate(calls):
        role = tally.by_role.setdefault(call.role, Counter())
        before = Counter(vars(tally))
        sequence = np.concatenate((call.prompt, call.tape, np.repeat(call.tape[-1:], max_draft + 1)))
        end, total = int(call.prompt.size) + 1, int(call.prompt.size + call.tape.size)
        method.start(str(number), call)
        tally.num_steps += 1
        num_new = 1
        while end < total:
            started = time.perf_counter()
            draft = draft_after(end)
            tally.propose_us.append((time.perf_counter() - started) * 1e6)
            n = int(draft.size)
            if n:
                accepted = common_prefix(draft, sequence[end:])
                tally.num_drafts += 1
                tally.num_draft_tokens += n
                tally.num_accepted_tokens += accepted
                tally.drafted_at.update(range(n))
                tally.accepted_at.update(range(accepted))
            else:
                accepted = 0
            num_new = accepted + 1
            end += num_new
            tally.num_steps += 1
        draft_after(end)
        method.finish()
        tally.num_tokens += int(call.tape.size)
        counts = Counter({key: getattr(tally, key) - before[key] for key in CALL_COUNTS})
        role.update(counts)
        if by_call is not None:
            by_call.append(counts)
    if method.counts is not None:
        tally.by_source = {
            name: {**counts, "num_hits": method.counts.num_hits[name], "num_lookups": method.counts.num_lookups[name]}
            for name, counts in method.counts.by_source.items()
        }
    return tally


Progress = Callable[[int, int, str], None]
"""(done, total, what is under way)."""


def simulate(
    traces: Sequence[Trace],
    *,
    tokenizer: Tokenizer,
    tool_wire: ToolWire,
    methods: Sequence[str],
    cost_ratios: Sequence[float],
    settings: Settings,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare ``methods`` over ``traces``: ``{"kind", "settings", "environment", "missing", "rows"}``.

    One row for each trace, method and cost ratio; a method that cannot run is named in ``missing`` with the reason.
    """
    rows: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    total = len(traces) * len(methods)
    for i, trace in enumerate(traces):
        calls = list(Planner(tokenizer, tool_wire).calls(trace))
        for j, name in enumerate(methods):
            if progress is not None:
                progress(i * len(methods) + j, total, f"{trace.name} {name}")
            try:
                rows.extend(_rows(trace.name, name, calls, cost_ratios, settings, tokenizer))
            except MissingExtraError as error:
                missing[name] = str(error)
    told = settings.model_dump(mode="json")
    told.update(tokenizer=tokenizer.name, tokenizer_fingerprint=tokenizer.fingerprint, tool_wire=tool_wire)
    corpus = corpus_told(settings.corpus, (call.session for trace in traces for call in trace.calls))
    if corpus is not None:
        told["corpus_info"] = corpus
    return {"kind": "simulate", "settings": told, "environment": environment(), "missing": missing, "rows": rows}


def _rows(
    trace: str,
    name: str,
    calls: Sequence[PlannedCall],
    cost_ratios: Sequence[float],
    settings: Settings,
    tokenizer: Tokenizer,
) -> list[dict[str, Any]]:
    rows = []
    tally: Tally | None = None
    for ratio in cost_ratios:
        if tally is None or name in RATIO_AWARE:
            told = settings.model_copy(update={"cost_ratio": ratio})
            tally = replay(METHODS[name](told, tokenizer), calls, max_draft=settings.max_draft)
        rows.append(tally.row(trace=trace, method=name, cost_ratio=ratio))
    return rows
