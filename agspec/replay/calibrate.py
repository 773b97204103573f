"""Calibration: what recorded sessions tell of the odds, and how far a draft pays by role.

The drafter replays the sessions as it would serve them; its odds model learns on the way, and that is what is kept.
How far a draft pays is read off the same replay: at each position of the drafts that got so far, the share accepted.
Held-out: the model is trained again without a part of the sessions and tested on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from agspec.captable import ENOUGH, Bin, CapFile, CapRow, Evaluation, pack_odds, survival_of
from agspec.draft.counts import Counts, Draft
from agspec.draft.odds import OddsState
from agspec.replay.methods import Agspec
from agspec.replay.plan import PlannedCall
from agspec.replay.simulate import replay
from agspec.settings import Settings
from agspec.tokens import Tokenizer

Tenants = Sequence[Sequence[PlannedCall]]
"""Calls of each trace; a trace is a tenant."""
Progress = Callable[[int, int, str], None]
NOWHERE = (Counter[int](), Counter[int]())
"""Positions of a role without drafts."""


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
    """What one replay taught. ``num_tokens``: output tokens by role.

    ``least``: chance under which one more token does not pay, at the engine's pace at the end (see ``draft.budget``).
    """

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
    fit = partial(fit_row, least=learned.least, max_draft=settings.max_draft)
    counts = learned.counts
    whole = fit(counts.drafted_at, counts.accepted_at, num_tokens=learned.num_tokens.total())
    roles = {
        role: fit(*counts.positions_of.get(role, NOWHERE), num_tokens=num_tokens)
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


def fit_row(
    drafted_at: Counter[int], accepted_at: Counter[int], *, num_tokens: int, least: float, max_draft: int
) -> CapRow:
    """Limits from how many drafts reached each position (0 the first) and how many were accepted that far.

    The cap is the longest draft whose last token was accepted with a chance of ``least``. Where too few drafts got,
    nothing speaks against the longest.
    """
    told = max((k + 1 for k in drafted_at if k < max_draft), default=0)
    drafted = tuple(drafted_at[k] for k in range(told))
    accepted = tuple(accepted_at[k] for k in range(told))
    judged = [share for share, n in zip(survival_of(drafted, accepted), drafted, strict=True) if n >= ENOUGH]
    cap = next((k for k, share in enumerate(judged) if share < least), max_draft)
    return CapRow(cap=cap, num_tokens=num_tokens, drafted=drafted, accepted=accepted)
