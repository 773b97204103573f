"""How sure, and how much at a time: the odds learned online, and the controller."""

from __future__ import annotations

import numpy as np

from agspec.draft.controller import LONGEST_REST, REST, WINDOW, Controller
from agspec.draft.lookup import Candidate
from agspec.draft.odds import Odds
from agspec.tokens import as_tokens

# --- the controller ----------------------------------------------------------------------------------------------


def test_controller_rests_when_nothing_is_accepted_and_comes_back() -> None:
    controller = Controller()
    waits: list[int] = []
    for _ in range(WINDOW + 6):
        rests = 0
        while controller.step() == 0.0:
            rests += 1
        waits.append(rests)
        controller.observe(drafted=4, accepted=0)
    assert waits[:WINDOW] == [0] * WINDOW
    assert waits[WINDOW:] == [REST, 2 * REST, 4 * REST, 8 * REST, LONGEST_REST, LONGEST_REST]
    while controller.step() == 0.0:
        pass
    low = controller.multiplier
    controller.observe(drafted=4, accepted=4)
    assert controller.step() > low
    controller.observe(drafted=4, accepted=0)
    assert controller.step() > 0, "one accepted draft ends the resting"


# --- odds --------------------------------------------------------------------------------------------------------


def chances(odds: Odds, candidate: Candidate) -> list[float]:
    return odds.judge(candidate, store=0, fared=0, before=7, floor=0.0).probs.tolist()


def test_odds_learn_from_what_came() -> None:
    candidate = Candidate(as_tokens([11, 12, 13]), np.array([0.8, 0.8, 0.8]), 6, as_tokens([2, 2, 2]))
    for came, sign in (([11, 12, 13], 1), ([99], -1)):
        odds, twin = Odds(), Odds()
        before = chances(odds, candidate)
        for _ in range(20):
            for model in (odds, twin):
                model.learn(candidate, as_tokens(came), store=0, fared=0, before=7)
        after = chances(odds, candidate)
        assert sign * (after[0] - before[0]) > 0.2 * (1 - before[0] if sign > 0 else before[0])
        assert after == chances(twin, candidate)
        assert all(0 < p < 1 for p in after)
        short = odds.judge(candidate, store=0, fared=0, before=7, floor=after[0] * after[1] * 0.999)
        assert short.tokens.tolist() == [11, 12]


def test_odds_stop_at_the_first_wrong_token() -> None:
    """What stands behind a wrong token was never put to the test."""
    candidate = Candidate(as_tokens([11, 12, 13]), np.array([0.3, 0.6, 0.95]), 6, as_tokens([2, 2, 2]))
    odds, one = Odds(), Odds()
    odds.learn(candidate, as_tokens([99, 12, 13]), store=0, fared=0, before=7)
    one.learn(candidate, as_tokens([99]), store=0, fared=0, before=7)
    assert chances(odds, candidate) == chances(one, candidate)
