"""What a step costs, what a drafted token must promise, and which tokens of a batch are worth it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agspec.draft.budget import Budget, best, merits
from agspec.draft.cost import StepCost

# --- cost --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0.01, 0.27])
def test_cost_of_a_ratio(ratio: float) -> None:
    cost = StepCost.from_ratio(ratio)
    for rows, drafted in ((1, 0), (1, 7), (4, 30), (64, 5)):
        assert cost.step(rows, drafted) == pytest.approx(rows * (1 + ratio) + ratio * drafted)
    assert cost.curve(3, 9).tolist() == pytest.approx([cost.step(3, n) for n in range(10)])


def test_cost_between_knots_and_beyond_them() -> None:
    cost = StepCost((2, 4), (0.0, 1.0, 3.0), ((10.0, 12.0, 20.0), (20.0, 24.0, 40.0)))
    assert cost.step(2, 2) == 12
    assert cost.step(3, 3) == 18, "half way between 12 and 24"
    assert cost.step(4, 4 * 5) == 56, "the last slope goes on"
    assert cost.step(1, 1) == 12, "below the first batch size its row holds"
    assert cost.step(6, 0) == 30
    assert cost.share(2, 0) == pytest.approx(0.1)


# --- one row -----------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=30), st.floats(0.001, 1), st.floats(1, 6))
def test_merits_never_ascend(chances: list[float], share: float, rate: float) -> None:
    out = np.zeros(len(chances))
    merits(np.array(chances), len(chances), share, rate, False, out)
    assert (np.diff(out) <= 0).all()
    assert 0 < out[0] <= chances[0]
    merits(np.array(chances), len(chances), share, rate, True, out)
    assert out.tolist() == pytest.approx(np.cumprod(chances).tolist())


def test_the_candidate_that_promises_most_is_chosen() -> None:
    chances = np.zeros((3, 8))
    chances[0, :1] = 0.95
    chances[1, :6] = 0.9
    chances[2, :8] = 0.3
    out = np.zeros(8)
    assert best(chances, np.array([1, 6, 8]), 0.1, 2.0, False, 0.14, out) == (1, 6)
    assert best(chances, np.array([1, 0, 8]), 0.1, 2.0, False, 0.14, out) == (0, 1)
    assert best(chances, np.array([0, 0, 0]), 0.1, 2.0, False, 0.14, out) == (-1, 0)


# --- a batch -----------------------------------------------------------------------------------------------------


def proven(cost: StepCost, caution: float) -> Budget:
    """A budget whose odds have been put to the test for long."""
    budget = Budget(cost, caution=caution)
    budget.observe(rows=1, num_new=10**9, num_draft=0)
    return budget


def test_odds_that_are_unproven_must_promise_more_in_a_batch() -> None:
    budget = Budget(StepCost.from_ratio(0.25), caution=1.3)
    assert budget.care(1) == 1.3
    assert budget.care(16) > budget.care(4) > 1.5
    assert budget.floor(0.2, 16) > budget.floor(0.2, 1)
    before = budget.care(16)
    budget.observe(rows=16, num_new=200, num_draft=0)
    assert budget.care(16) - 1.3 == pytest.approx((before - 1.3) / 2)
    assert budget.care(1) == 1.3


def test_what_a_batch_affords() -> None:
    """Worked by hand: a token costs 0.2 of a row's plain step; caution 1; the best go first, over all rows."""
    budget = proven(StepCost.from_ratio(0.25), caution=1.0)
    offers = [np.array([0.9, 0.5, 0.19]), np.array([0.21, 0.1]), np.array([0.1])]
    assert budget.afford(offers, rows=3) == [2, 1, 0]


def test_a_dear_first_token_is_paid_by_many() -> None:
    """Costs need not be convex: the first drafted token costs as much as a step, the next are free."""
    steep = Budget(StepCost((1,), (0.0, 1.0, 8.0), ((1.0, 2.0, 2.0),)), caution=1.0)
    assert steep.afford([np.array([0.9])], rows=1) == [0]
    assert steep.afford([np.array([0.9, 0.8, 0.7])], rows=1) == [3]


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(0.001, 0.999), min_size=1, max_size=8), min_size=1, max_size=5), st.floats(0.01, 2))
def test_allocation_is_the_best_there_is(rows: list[list[float]], ratio: float) -> None:
    """Against every way to cut the offers off (convex costs: each token on its own)."""
    offers = [np.array(sorted(row, reverse=True)) for row in rows]
    budget = proven(StepCost.from_ratio(ratio), caution=1.3)
    share = ratio / (1 + ratio)
    worth = [int((offer > 1.3 * share + 1e-9).sum()) for offer in offers]
    almost = [int((offer > 1.3 * share - 1e-9).sum()) for offer in offers]
    for got, least, most in zip(budget.afford(offers, rows=len(rows)), worth, almost, strict=True):
        assert least <= got <= most


def test_pace_follows_the_engine() -> None:
    budget = Budget(StepCost.from_ratio(0.1))
    for _ in range(4000):
        budget.observe(rows=2, num_new=8, num_draft=8)
    assert budget.rate == pytest.approx(8 / (2 + 8 * 0.1 / 1.1), rel=1e-3)
    assert budget.share(2) == pytest.approx(0.1 / 1.1)
    assert budget.floor(0.0, 2) > 0, "however cheap, a hopeless token is not drafted"
