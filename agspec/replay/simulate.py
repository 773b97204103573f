"""Replay recorded outputs against drafting methods: teacher-forced, deterministic, no engine.

The first token of a call comes from the prefill, so it is a step without a draft. Each further step verifies what
the method drafted after the step before, accepts the longest right prefix and adds one token, as vLLM does. The
end-of-turn token is part of the output; whatever a method drafts after it meets more of the same, as on the engine's
forced tapes, and the method drafts once more when the call is over, as the engine lets it.

A batch goes in lock-step, as a closed loop on the engine does: each slot takes one session after another and replays
its calls one after another, and in every step the calls of all slots are verified and drafted for together.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agspec.draft.novel import common_prefix
from agspec.errors import MissingExtraError
from agspec.replay.corpus import corpus_told
from agspec.replay.costs import NamedCost
from agspec.replay.environment import environment
from agspec.replay.methods import COST_AWARE, METHODS, Method, NoDraft, Step
from agspec.replay.plan import PlannedCall, Planner, by_session
from agspec.replay.render import ToolWire
from agspec.replay.tally import Tally
from agspec.replay.trace import Trace
from agspec.settings import Settings
from agspec.tokens import EMPTY, Tokenizer, Tokens

CALL_COUNTS = ("num_steps", "num_tokens", "num_draft_tokens", "num_accepted_tokens")
"""What is counted call by call."""


@dataclass(eq=False)
class _Live:
    """A call under way: ``sequence`` int32 [n] is prompt, tape and more of the tape's last token.

    Of it, the first ``end`` tokens are out, ``num_new`` of them since the last step; ``draft`` waits to be verified.
    """

    request: str
    call: PlannedCall
    sequence: Tokens
    end: int
    num_new: int = 0
    draft: Tokens = field(default_factory=lambda: EMPTY)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def over(self) -> bool:
        """Whether the tape is out."""
        return self.end >= self.call.prompt.size + self.call.tape.size

    def verify(self) -> int:
        """One step: count it, accept what is right of the draft, add one token; how many were accepted."""
        accepted = common_prefix(self.draft, self.sequence[self.end :]) if self.draft.size else 0
        self.num_new = accepted + 1
        self.end += self.num_new
        self.counts.update(num_steps=1, num_draft_tokens=int(self.draft.size), num_accepted_tokens=accepted)
        return accepted


def replay(
    method: Method,
    calls: Iterable[PlannedCall],
    *,
    max_draft: int,
    batch: int = 1,
    context_limit: int | None = None,
    log: list[Tokens] | None = None,
    by_call: list[Counter[str]] | None = None,
) -> Tally:
    """Run ``method`` over ``calls``; drafts stay within ``context_limit`` tokens, ``log`` gets each of them.

    ``by_call`` gets the CALL_COUNTS of each call, in the order in which they began. ``batch`` 1 takes the calls as they
    come, a larger one session by session, the first ones first.
    """
    tally = Tally()
    waiting = deque([list(calls)] if batch == 1 else by_session(calls))
    queues: list[deque[PlannedCall]] = [deque() for _ in range(batch)]
    slots: list[_Live | None] = [None] * batch
    number = 0
    while True:
        for slot, queue in enumerate(queues):
            if slots[slot] is None and not queue and waiting:
                queue.extend(waiting.popleft())
            if slots[slot] is None and queue:
                call = queue.popleft()
                sequence = np.concatenate((call.prompt, call.tape, np.repeat(call.tape[-1:], max_draft + 1)))
                live = _Live(str(number), call, sequence, int(call.prompt.size))
                live.counts["num_tokens"] = int(call.tape.size)
                slots[slot] = live
                if by_call is not None:
                    by_call.append(live.counts)
                method.start(str(number), call)
                number += 1
        rows = [row for row in slots if row is not None]
        if not rows:
            break
        tally.step_shapes[len(rows), sum(int(row.draft.size) for row in rows)] += 1
        for row in rows:
            tally.add_row(drafted=int(row.draft.size), accepted=row.verify())
        steps = []
        for row in rows:
            room = max_draft if context_limit is None else min(max_draft, max(0, context_limit - row.end - 1))
            steps.append(Step(row.request, row.sequence[: row.end], row.num_new, room))
        started = time.perf_counter()
        drafts = method.propose(steps)
        if not all(row.over for row in rows):
            tally.propose_us.append((time.perf_counter() - started) * 1e6)
        for row, draft in zip(rows, drafts, strict=True):
            row.draft = draft
            if log is not None and draft.size:
                log.append(draft)
            if row.over:
                method.finish(row.request)
                tally.add_call(row.call.role, row.counts)
        slots = [None if row is None or row.over else row for row in slots]
    if method.counts is not None:
        tally.drift = method.counts.drift()
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
    costs: Sequence[NamedCost],
    settings: Settings,
    batch: int = 1,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare ``methods`` over ``traces``: ``{"kind", "settings", "environment", "missing", "rows"}``.

    One row for each trace, method and cost; ``costs`` take the place of the one in ``settings``. ``batch``: sessions
    replayed at a time. A method that cannot run is named in ``missing`` with the reason.
    """
    rows: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    total = len(traces) * len(methods)
    for i, trace in enumerate(traces):
        calls = list(Planner(tokenizer, tool_wire).calls(trace))
        none = replay(NoDraft(), calls, max_draft=settings.max_draft, batch=batch)
        for j, name in enumerate(methods):
            if progress is not None:
                progress(i * len(methods) + j, total, f"{trace.name} {name}")
            try:
                tallies = _tallies(name, calls, costs, settings, tokenizer, batch)
            except MissingExtraError as error:
                missing[name] = str(error)
                continue
            for cost, tally in zip(costs, tallies, strict=True):
                names = {"trace": trace.name, "method": name, **cost.names, "batch": batch}
                rows.append({**names, **tally.row(cost.steps, none)})
    told = settings.model_dump(mode="json", exclude={"cost", "cost_ratio"})
    told.update(tokenizer=tokenizer.name, tokenizer_fingerprint=tokenizer.fingerprint, tool_wire=tool_wire)
    told.update(costs=[name for cost in costs for name in cost.names.values()], batch=batch)
    corpus = corpus_told(settings.corpus, (call.session for trace in traces for call in trace.calls))
    if corpus is not None:
        told["corpus_info"] = corpus
    return {"kind": "simulate", "settings": told, "environment": environment(), "missing": missing, "rows": rows}


def _tallies(
    name: str,
    calls: Sequence[PlannedCall],
    costs: Sequence[NamedCost],
    settings: Settings,
    tokenizer: Tokenizer,
    batch: int,
) -> list[Tally]:
    """One for each cost; a method that makes no use of the cost is replayed once."""
    tallies: list[Tally] = []
    for cost in costs:
        if not tallies or name in COST_AWARE:
            method = METHODS[name](cost.tell(settings), tokenizer)
            tallies.append(replay(method, calls, max_draft=settings.max_draft, batch=batch))
        else:
            tallies.append(tallies[0])
    return tallies
