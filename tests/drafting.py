"""Shared by the tests of drafter and stores: a drafter, one step, one text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from agspec.draft.caps import CapTable, Limits
from agspec.draft.cost import StepCost
from agspec.draft.drafter import Drafter
from agspec.draft.lookup import SamLookup
from agspec.draft.request import Row
from agspec.draft.store import Budgets
from agspec.tokens import Tokens, as_tokens

VOCABULARY = 1000
OPEN = CapTable(Limits(floor=0.02))


def make(caps: CapTable = OPEN, *, barred: Sequence[int] = (), **options: Any) -> Drafter:
    budgets = options.pop("budgets", Budgets(tokens_per_step=100_000))
    return Drafter(
        lookup=SamLookup,
        caps=caps,
        budgets=budgets,
        cost=StepCost.from_ratio(0.03),
        barred=as_tokens(barred),
        vocab_size=VOCABULARY,
        **options,
    )


def step(drafter: Drafter, request: str, context: Any, *, num_new: int = 1, room: int = 48) -> list[int]:
    draft = drafter.propose([Row(request, as_tokens(context), num_new, room)])[0]
    return [] if draft is None else draft.tokens.tolist()


def text(start: int, n: int = 40) -> Tokens:
    return np.arange(start, start + n, dtype=np.int32)
