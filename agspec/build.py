"""The one factory: Settings + tokenizer -> Drafter. Engine and simulator both use it."""

from __future__ import annotations

from functools import lru_cache

from agspec.captable import read_caps
from agspec.corpus import open_corpus
from agspec.costfile import read_cost
from agspec.draft.caps import DEFAULT_COST_RATIO, CapTable, Limits
from agspec.draft.cost import StepCost
from agspec.draft.drafter import Drafter
from agspec.draft.lookup import LookupFactory, SamLookup
from agspec.draft.odds import OddsState
from agspec.draft.regions import Regions
from agspec.draft.store import Budgets
from agspec.scaffold import load_profiles
from agspec.settings import Settings
from agspec.tokens import Tokenizer


def sam_lookup(budget_bytes: int) -> SamLookup:
    """Our suffix automaton."""
    return SamLookup(budget_bytes)


def make_lookup(settings: Settings) -> LookupFactory:
    """The engine the settings name; raises MissingExtraError."""
    if settings.lookup == "sam":
        return sam_lookup
    from agspec.draft.suffix_tree import SuffixTreeLookup

    return SuffixTreeLookup


def step_cost(settings: Settings) -> StepCost:
    """What a step costs: the cost profile's model, else one of the cost ratio; raises InputError for a broken file."""
    if settings.cost is not None:
        return read_cost(settings.cost)
    return StepCost.from_ratio(DEFAULT_COST_RATIO if settings.cost_ratio is None else settings.cost_ratio)


@lru_cache(maxsize=4)
def regions_of(tokenizer: Tokenizer) -> Regions:
    """The shipped profiles' markers over a vocabulary; made once for each, it takes half a second."""
    return Regions(load_profiles().region_markers, tokenizer.texts)


def build_drafter(settings: Settings, tokenizer: Tokenizer, *, odds: OddsState | None = None) -> Drafter:
    """A drafter as ``settings`` say; raises InputError for a caps file or corpus that does not fit.

    ``odds``: where its models start, in the place of what the caps file says.
    """
    corpus = None if settings.corpus is None else open_corpus(settings.corpus, tokenizer)
    caps = CapTable(Limits(cap=settings.max_draft))
    if settings.caps is not None:
        caps, learned = read_caps(settings.caps, tokenizer)
        odds = learned if odds is None else odds
    return Drafter(
        lookup=make_lookup(settings),
        caps=caps,
        odds=odds,
        corpus=corpus,
        budgets=Budgets(
            session=settings.session_mib << 20,
            workspace=settings.workspace_mib << 20,
            shared=settings.shared_mib << 20,
            tokens_per_step=settings.tokens_per_step,
            sessions=settings.max_sessions,
            tenants=settings.max_tenants,
        ),
        cost=step_cost(settings),
        barred=tokenizer.barred_ids,
        vocab_size=tokenizer.vocab_size,
        enabled=settings.stores,
        parts=settings.parts,
        threads=settings.threads,
        regions=regions_of(tokenizer) if "regions" in settings.parts else None,
    )
