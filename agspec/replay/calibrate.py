"""Calibration: what recorded sessions tell of the odds, and how far a draft pays by role.

The drafter replays the sessions as it would serve them; its odds model learns on the way, and that is what is kept.
How far a draft pays is read off the same replay: at each position of the drafts that got so far, the share accepted.
Held-out: the model is trained again without a part of the sessions and tested on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agspec.captable import Bin, CapFile, CapRow, Evaluation, pack_odds
from agspec.draft.caps import Limits
from agspec.draft.counts import Counts, Draft
from agspec.draft.odds import OddsState
from agspec.replay.methods import Agspec
from agspec.replay.plan import PlannedCall
from agspec.replay.simulate import replay
from agspec.settings import Settings
from agspec.tokens import Tokenizer

ENOUGH = 20
"""Drafts that must have reached a position for it to be judged; beyond, nothing speaks against the longest draft."""

Tenants = Sequence[Sequence[PlannedCall]]
"""Calls of each trace; a trace is a tenant."""
Progress = Callable[[int, int, str], None]


@dataclass
class RoleCounts(Counts):
    """Counts that also sort positions by role: (drafts that got there, drafts accepted that far)."""

    positions_of: dict[str, tuple[Counter[int], Counter[int]]] = field(default_factory=dict)

    def add(self, draft: Draft, accepted: int) -> None:
        """Count a verified draft."""
        super().add(draft, accepted)
        drafted_at, accepted_at = self.positions_of.setdefault(draft.role, (Counter(), Counter()))
        drafted_at.update(range(int(draft.tokens.size)))
        accepted_at.update(range(accepted))


@dataclass(frozen=True)
class Learned:
    """What one replay taught. ``share`` and ``rate``: see ``draft.budget``, at the end of it."""

    odds: OddsState | None
    counts: RoleCounts
    num_tokens: Counter[str]
    least: float


def learn(tenants: Tenants, *, settings: Settings, tokenizer: Tokenizer, odds: OddsState | None = None) -> Learned:
    """Replay ``tenants`` one after another, stores cold for each; the odds go on learning, from ``odds`` if given."""
    counts, num_tokens, least = RoleCounts(), Counter[str](), 0.0
    for calls in tenants:
        method = Agspec(settings, tokenizer, odds=odds)
        method.drafter.counts = counts
        replay(method, calls, max_draft=settings.max_draft)
        num_tokens.update(dict.fromkeys({call.role for call in calls}, 0))
        for call in calls:
            num_tokens[call.role] += int(call.tape.size)
        budget = method.drafter.budget
        least = budget.share(1) * budget.rate
        odds = method.drafter.homes.tenant("").odds.state
    return Learned(odds, counts, num_tokens, least)


def calibrate(
    tenants: Tenants,
    *,
    settings: Settings,
    tokenizer: Tokenizer,
    folds: int = 0,
    progress: Progress | None = None,
) -> CapFile:
    """A CapFile for ``tokenizer`` from planned calls, at the cost in ``settings``; ``folds`` 0: not evaluated."""
    tell = progress or (lambda done, total, what: None)
    tell(0, 1 + 2 * folds, "learning")
    base = settings.model_copy(update={"caps": None})
    learned = learn(tenants, settings=base, tokenizer=tokenizer)
    whole = _row([_positions(learned, role) for role in learned.num_tokens], learned, settings.max_draft)
    roles = {
        role: _row([_positions(learned, role)], learned, settings.max_draft, num_tokens)
        for role, num_tokens in sorted(learned.num_tokens.items())
    }
    return CapFile(
        tokenizer=tokenizer.fingerprint,
        tokenizer_name=tokenizer.name,
        default=whole,
        roles=roles,
        evaluation=evaluate(tenants, folds, settings=base, tokenizer=tokenizer, progress=tell) if folds else None,
        odds=pack_odds(learned.odds) if learned.odds is not None else None,
    )


def evaluate(
    tenants: Tenants, folds: int, *, settings: Settings, tokenizer: Tokenizer, progress: Progress
) -> Evaluation | None:
    """Train on all sessions but each ``folds``-th, test on those, ``folds`` times; None where nothing was drafted."""
    total = Counts()
    for fold in range(folds):
        train, test = split(tenants, folds, fold)
        progress(1 + 2 * fold, 1 + 2 * folds, f"fold {fold + 1}: learning")
        odds = learn(train, settings=settings, tokenizer=tokenizer).odds
        progress(2 + 2 * fold, 1 + 2 * folds, f"fold {fold + 1}: testing")
        tested = learn(test, settings=settings, tokenizer=tokenizer, odds=odds).counts
        total.reliability += tested.reliability
        total.squared_error += tested.squared_error
    number, foretold, right = total.reliability.T
    if not number.sum():
        return None
    share = float(right.sum() / number.sum())
    bins = [
        Bin(num_tokens=int(n), foretold=round(f / n, 4), right=round(r / n, 4))
        for n, f, r in zip(number, foretold, right, strict=True)
        if n
    ]
    return Evaluation(
        folds=folds,
        brier=round(total.squared_error / float(number.sum()), 5),
        brier_base=round(share * (1 - share), 5),
        reliability=tuple(bins),
    )


def split(tenants: Tenants, folds: int, fold: int) -> tuple[Tenants, Tenants]:
    """(all sessions but every ``folds``-th, those), counted over all tenants; a single session is cut by its calls."""
    names = list(dict.fromkeys((i, call.session) for i, calls in enumerate(tenants) for call in calls))
    held = set(names[fold::folds])
    if len(names) < folds:
        parts = [
            ([c for j, c in enumerate(calls) if j * folds // len(calls) != fold],
             [c for j, c in enumerate(calls) if j * folds // len(calls) == fold])
            for calls in tenants
        ]  # fmt: skip
        return [train for train, _ in parts], [test for _, test in parts]
    train = [[call for call in calls if (i, call.session) not in held] for i, calls in enumerate(tenants)]
    test = [[call for call in calls if (i, call.session) in held] for i, calls in enumerate(tenants)]
    return train, test


def _positions(learned: Learned, role: str) -> tuple[Counter[int], Counter[int]]:
    return learned.counts.positions_of.get(role, (Counter(), Counter()))


def _row(
    positions: list[tuple[Counter[int], Counter[int]]], learned: Learned, max_draft: int, num_tokens: int | None = None
) -> CapRow:
    """The longest draft whose next token pays: at each position the share accepted, never rising, against the cost."""
    drafted = [sum(at[k] for at, _ in positions) for k in range(max_draft)]
    accepted = [sum(at[k] for _, at in positions) for k in range(max_draft)]
    cap, survival = max_draft, 1.0
    for k in range(max_draft):
        if drafted[k] < ENOUGH:
            break
        survival = min(survival, (accepted[k] + 1) / (drafted[k] + 2))
        if survival < learned.least:
            cap = k
            break
    told = max((k + 1 for k in range(max_draft) if drafted[k]), default=0)
    return CapRow(
        cap=cap,
        factor=Limits.factor,
        offset=Limits.offset,
        num_tokens=learned.num_tokens.total() if num_tokens is None else num_tokens,
        drafted=tuple(drafted[:told]),
        accepted=tuple(accepted[:told]),
    )
