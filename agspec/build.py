"""The one factory: Settings + tokenizer -> Drafter. Engine and simulator both use it."""

from __future__ import annotations

from itertools import pairwise

from agspec.captable import read_caps
from agspec.corpus import open_corpus
from agspec.draft.caps import DEFAULT_COST_RATIO, CapTable, Limits
from agspec.draft.drafter import Drafter
from agspec.draft.lookup import LookupFactory, SamLookup
from agspec.draft.store import Budgets
from agspec.settings import Settings
from agspec.tokens import Tokenizer

FLOORS = ((0.01, 0.05), (0.03, 0.10), (0.065, 0.17), (0.15, 0.30), (0.27, 0.45), (0.4, 0.55))
"""(cost ratio, chance below which the next token no longer pays), from replays of other sessions."""


def sam_lookup(budget_bytes: int) -> SamLookup:
    """Our suffix automaton."""
    return SamLookup(budget_bytes)


def make_lookup(settings: Settings) -> LookupFactory:
    """The engine the settings name; raises MissingExtraError."""
    if settings.lookup == "sam":
        return sam_lookup
    from agspec.draft.suffix_tree import SuffixTreeLookup

    return SuffixTreeLookup


def floor_for(cost_ratio: float) -> float:
    """Least chance of a token worth verifying, interpolated between the ratios of FLOORS.

    >>> floor_for(0.03)
    0.1
    """
    points = (*FLOORS, (1.0, 0.8))
    if cost_ratio <= points[0][0]:
        return points[0][1]
    for (r0, f0), (r1, f1) in pairwise(points):
        if cost_ratio <= r1:
            return f0 + (f1 - f0) * (cost_ratio - r0) / (r1 - r0)
    return points[-1][1]


def default_caps(settings: Settings) -> CapTable:
    """The policy where no CapTable was fitted."""
    ratio = DEFAULT_COST_RATIO if settings.cost_ratio is None else settings.cost_ratio
    return CapTable(Limits(cap=settings.max_draft, floor=floor_for(ratio)))


def build_drafter(settings: Settings, tokenizer: Tokenizer) -> Drafter:
    """A drafter as ``settings`` say; raises InputError for a caps file or corpus that does not fit."""
    corpus = None if settings.corpus is None else SamLookup(0, frozen=open_corpus(settings.corpus, tokenizer))
    return Drafter(
        lookup=make_lookup(settings),
        caps=default_caps(settings) if settings.caps is None else read_caps(settings.caps, tokenizer),
        corpus=corpus,
        budgets=Budgets(
            session=settings.session_mib << 20,
            workspace=settings.workspace_mib << 20,
            shared=settings.shared_mib << 20,
            tokens_per_step=settings.tokens_per_step,
            sessions=settings.max_sessions,
            tenants=settings.max_tenants,
        ),
        barred=tokenizer.barred_ids,
        vocab_size=tokenizer.vocab_size,
        enabled=settings.stores,
    )
