"""How sure, and how much at a time: the odds learned online, and the controller."""

from __future__ import annotations

import numpy as np

from agspec.draft.controller import LONGEST_REST, REST, WINDOW, Controller
from agspec.draft.lookup import Candidate
from agspec.draft.odds import Odds, judge, learn
from agspec.draft.panel import Panel
from agspec.tokens import as_tokens
from tests.support import put

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


def panel(candidate: Candidate, *others: Candidate) -> Panel:
    made = Panel()
    for source, each in enumerate((candidate, *others)):
        put(made, source, each)
    return made


def candidate(tokens: list[int], probs: list[float], *, length: int = 6, count: int = 2) -> Candidate:
    counts = np.full(len(tokens), count, np.int32)
    return Candidate(as_tokens(tokens), np.array(probs), length, counts, counts)


def chances(odds: Odds, made: Panel, *, floor: float = 0.0) -> list[float]:
    judge(odds.weights, made.board, floor)
    return made.board.chances[0, : made.board.kept[0]].tolist()


def taught(odds: Odds, made: Panel, came: list[int]) -> int:
    return learn(odds.weights, odds.squares, made.board, as_tokens(came))


def test_odds_learn_from_what_came() -> None:
    made = panel(candidate([11, 12, 13], [0.8, 0.8, 0.8]))
    for came, sign in (([11, 12, 13], 1), ([99], -1)):
        odds, twin = Odds(), Odds()
        before = chances(odds, made)
        for _ in range(20):
            for model in (odds, twin):
                taught(model, made, came)
        after = chances(odds, made)
        assert sign * (after[0] - before[0]) > 0.2 * (1 - before[0] if sign > 0 else before[0])
        assert after == chances(twin, made)
        assert all(0 < p < 1 for p in after)
        assert chances(odds, made, floor=after[0] * after[1] * 0.999) == after[:2]
        assert chances(Odds(odds.state), made) == after, "another model goes on from there"


def test_odds_stop_at_the_first_wrong_token() -> None:
    """What stands behind a wrong token was never put to the test."""
    made = panel(candidate([11, 12, 13], [0.3, 0.6, 0.95]))
    odds, one = Odds(), Odds()
    assert taught(odds, made, [99, 12, 13]) == 0
    taught(one, made, [99])
    assert chances(odds, made) == chances(one, made)


def test_learning_tells_the_longest_right_run() -> None:
    made = panel(candidate([11, 12, 13], [0.9] * 3), candidate([11, 20, 21, 22], [0.9] * 4))
    assert taught(Odds(), made, [11, 20, 21, 5]) == 3
    assert taught(Odds(), made, [4]) == 0


def test_agreement_of_sources_is_evidence() -> None:
    """Two sources that said the same were right, two that parted were wrong: the odds learn to tell them apart."""
    rng = np.random.default_rng(5)
    odds = Odds()
    for _ in range(400):
        token = int(rng.integers(100, 900))
        alike = bool(rng.integers(2))
        made = panel(candidate([token], [0.5]), candidate([token if alike else token + 1], [0.5]))
        taught(odds, made, [token if alike else 5])
    agree = chances(odds, panel(candidate([50], [0.5]), candidate([50], [0.5])))[0]
    part = chances(odds, panel(candidate([50], [0.5]), candidate([60], [0.5])))[0]
    assert agree > 0.8
    assert part < 0.2
