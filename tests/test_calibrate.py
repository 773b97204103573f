"""Calibration: what is learned from replays, how far a draft pays, and whether it holds on sessions held out."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agspec.captable import ENOUGH, CapFile, read_cap_file, read_caps
from agspec.draft.caps import Limits
from agspec.draft.cost import StepCost
from agspec.draft.counts import BINS, SETTLED, Counts, Draft
from agspec.replay.calibrate import RoleCounts, calibrate, fit_row, learn, split
from agspec.replay.methods import Agspec, NoDraft
from agspec.replay.plan import PlannedCall, Planner
from agspec.replay.simulate import replay
from agspec.replay.tally import Tally
from agspec.replay.trace import read_trace
from agspec.resources import data_dir
from agspec.settings import Settings
from agspec.tokens import Tokens, as_tokens, load_tokenizer
from tests.replaying import END, call, make_tokenizer, random_calls

PLAIN = Settings(cost_ratio=0.03)
COST = StepCost.from_ratio(0.03)


@cache
def synthetic() -> CapFile:
    return calibrate([random_calls(1), random_calls(2)], settings=PLAIN, tokenizer=make_tokenizer())


def draft(chances: list[float], role: str = "coder") -> Draft:
    tokens = as_tokens(range(len(chances)))
    return Draft(tokens, "session", 4, np.array(chances, np.float64), role)


def run(calls: list[PlannedCall], caps: Path | None, log: list[Tokens] | None = None) -> Tally:
    method = Agspec(PLAIN.model_copy(update={"caps": caps}), make_tokenizer())
    return replay(method, calls, max_draft=48, log=log)


# --- the file, and what it does ----------------------------------------------------------------------------------


def test_a_file_round_trips_and_replays_the_same(tmp_path: Path) -> None:
    path = tmp_path / "caps.json"
    path.write_text(synthetic().to_json())
    assert read_cap_file(path) == synthetic()
    assert synthetic().to_json(odds=False) in path.read_text().replace(',\n "odds": {', "\n}\n")
    learned = learn([random_calls(1), random_calls(2)], settings=PLAIN, tokenizer=make_tokenizer()).odds
    table, odds = read_caps(path, make_tokenizer())
    assert odds is not None
    assert learned is not None
    np.testing.assert_allclose(odds.weights, learned.weights, rtol=1e-3, atol=6e-4)
    np.testing.assert_allclose(odds.squares, learned.squares, rtol=1e-3, atol=6e-3)
    assert {role: row.cap for role, row in synthetic().roles.items()} == {r: x.cap for r, x in table.roles.items()}
    first: list[Tokens] = []
    again: list[Tokens] = []
    calls = random_calls(3)
    cold, warm, twin = run(calls, None), run(calls, path, first), run(calls, path, again)
    assert [d.tolist() for d in first] == [d.tolist() for d in again]
    assert warm.num_steps == twin.num_steps
    assert warm.num_steps < cold.num_steps, "sessions alike: what was learned helps"


def test_an_unknown_role_uses_the_default_row() -> None:
    file = synthetic().model_copy(update={"default": synthetic().default.model_copy(update={"cap": 3})})
    assert set(file.roles) == {"coder", "chat"}
    table = file.table()
    assert table.limits("committer") == Limits(cap=3)
    assert table.limits("coder").cap == file.roles["coder"].cap != 3


def test_a_file_says_what_was_counted() -> None:
    file, calls = synthetic(), [*random_calls(1), *random_calls(2)]
    for role, row in file.roles.items():
        assert row.num_tokens == sum(c.tape.size for c in calls if c.role == role)
    assert file.default.num_tokens == sum(row.num_tokens for row in file.roles.values())
    for counts in ("drafted", "accepted"):
        parts = [getattr(row, counts) for row in file.roles.values()]
        for k, n in enumerate(getattr(file.default, counts)):
            assert n == sum(part[k] for part in parts if k < len(part))


# --- caps --------------------------------------------------------------------------------------------------------


def counted(lengths: list[tuple[int, int]]) -> RoleCounts:
    counts = RoleCounts()
    for drafted, accepted in lengths:
        counts.add(draft([0.5] * drafted), accepted)
    return counts


def test_a_draft_ends_where_acceptance_falls_under_the_cost() -> None:
    """100 drafts of 10 tokens: half of them right for six tokens, none further."""
    counts = counted([(10, 6)] * 50 + [(10, 0)] * 50)
    positions = counts.positions_of["coder"]
    assert fit_row(*positions, num_tokens=7, least=0.1, max_draft=48).cap == 6
    assert fit_row(*positions, num_tokens=7, least=0.005, max_draft=48).cap == 48, "cheap enough for any chance"
    assert fit_row(*positions, num_tokens=7, least=0.6, max_draft=48).cap == 0
    row = fit_row(*positions, num_tokens=7, least=0.1, max_draft=4)
    assert (row.cap, row.drafted, row.accepted, row.num_tokens) == (4, (100,) * 4, (50,) * 4, 7)
    assert counts.drafted_at == positions[0], "of one role, so of all"


def test_too_little_data_gives_the_longest_draft() -> None:
    few = counted([(10, 0)] * (ENOUGH - 1)).positions_of["coder"]
    assert fit_row(*few, num_tokens=0, least=0.5, max_draft=48).cap == 48
    assert fit_row(Counter(), Counter(), num_tokens=0, least=0.5, max_draft=48).cap == 48


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12)), max_size=60), st.floats(0, 1))
def test_survival_never_rises_and_the_cap_is_where_it_crosses(lengths: list[tuple[int, int]], least: float) -> None:
    counts = counted([(drafted, min(drafted, accepted)) for drafted, accepted in lengths])
    row = fit_row(counts.drafted_at, counts.accepted_at, num_tokens=0, least=least, max_draft=12)
    assert all(0 < after <= before < 1 for before, after in zip(row.survival, row.survival[1:], strict=False))
    for k, (share, drafted) in enumerate(zip(row.survival, row.drafted, strict=True)):
        if drafted >= ENOUGH:
            assert (share >= least) is (k < row.cap)


# --- held out ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folds", [2, 3])
def test_each_session_is_tested_once_by_what_the_others_taught(folds: int) -> None:
    tenants = [random_calls(1), random_calls(2)]
    tested: Counter[tuple[int, str]] = Counter()
    for fold in range(folds):
        parts = split(tenants, folds, fold)
        train, test = ({(i, c.session) for i, calls in enumerate(part) for c in calls} for part in parts)
        assert test
        assert not train & test
        assert [len(a) + len(b) for a, b in zip(*parts, strict=True)] == [12, 12]
        tested.update(test)
    assert tested == dict.fromkeys([(i, f"s{n}") for i in range(2) for n in range(3)], 1)


def test_a_single_session_is_cut_by_its_calls() -> None:
    calls = [call([1], [2, END], session="one") for _ in range(7)]
    tested = []
    for fold in range(3):
        (train,), (test,) = split([calls], 3, fold)
        assert len(train) + len(test) == 7
        assert [c for c in calls if any(c is t for t in test)] == list(test), "in order, in one piece"
        tested += test
    assert {id(c) for c in tested} == {id(c) for c in calls}
    assert len(tested) == 7
    assert split([[]], 3, 0) == ([[]], [[]])


def noisy_calls(seed: int, n: int = 30) -> list[PlannedCall]:
    """Answers that copy the prompt's end: words under 40 rightly with a chance of 0.95, the others with one of 0.3."""
    rng = np.random.default_rng(seed)
    calls = []
    for i in range(n):
        text = rng.permutation(60)
        right = np.where(text < 40, 0.95, 0.3)
        answer = np.where(rng.random(60) < right, text, rng.integers(60, 98, 60))
        calls.append(call(text.astype(np.int32), np.append(answer, END).astype(np.int32), session=f"{seed}-{i}"))
    return calls


def test_what_is_foretold_comes() -> None:
    """Chances told in between the two true ones cannot be right; those about them are, and most tokens lie there."""
    told: list[str] = []
    tenants = [noisy_calls(1), noisy_calls(2)]
    file = calibrate(tenants, settings=PLAIN, tokenizer=make_tokenizer(), folds=2,
                     progress=lambda done, total, what: told.append(f"{done}/{total} {what}"))  # fmt: skip
    found = file.evaluation
    assert found is not None
    assert found.brier < 0.7 * found.brier_base
    total = sum(each.num_tokens for each in found.reliability)
    assert sum(each.num_tokens * abs(each.foretold - each.right) for each in found.reliability) / total < 0.08
    for low, high, right in ((0.2, 0.4, 0.3), (0.9, 1.0, 0.95)):
        near = [each for each in found.reliability if low <= each.foretold < high]
        tokens = sum(each.num_tokens for each in near)
        assert tokens > 300
        assert sum(each.num_tokens * each.right for each in near) / tokens == pytest.approx(right, abs=0.05)
    assert told == ["0/5 learning", "1/5 fold 1: learning", "2/5 fold 1: testing", "3/5 fold 2: learning",
                    "4/5 fold 2: testing"]  # fmt: skip
    again = calibrate(tenants, settings=PLAIN, tokenizer=make_tokenizer(), folds=2)
    assert again == file, "deterministic"


def test_sessions_without_drafts_still_make_a_file() -> None:
    calls = [call([1, 2], [3, END], session=str(i)) for i in range(4)]
    file = calibrate([calls], settings=PLAIN, tokenizer=make_tokenizer(), folds=2)
    assert file.evaluation is None
    assert (file.roles["coder"].cap, file.roles["coder"].drafted) == (48, ())


def test_one_half_is_no_slower_with_what_the_other_taught(tmp_path: Path) -> None:
    tokenizer, path = load_tokenizer("embedded"), tmp_path / "caps.json"
    planner = Planner(tokenizer, "json")
    tenants = [list(planner.calls(read_trace(path))) for path in sorted(data_dir("replays").glob("*.jsonl.gz"))]
    train, test = split(tenants, 2, 1)
    path.write_text(calibrate(train, settings=PLAIN, tokenizer=tokenizer).to_json())
    for calls in test:
        none = replay(NoDraft(), calls, max_draft=48)
        cold, warm = (
            replay(Agspec(PLAIN.model_copy(update={"caps": caps}), tokenizer), calls, max_draft=48)
            for caps in (None, path)
        )
        assert warm.speedup(COST, none) > 0.99 * cold.speedup(COST, none) > 1.2


# --- counts ------------------------------------------------------------------------------------------------------

VERIFIED = st.lists(st.floats(0, 1), min_size=1, max_size=12).flatmap(
    lambda chances: st.tuples(st.just(chances), st.integers(0, len(chances)))
)


@settings(deadline=None)
@given(st.lists(VERIFIED, max_size=20))
def test_reliability_against_a_slow_twin(verified: list[tuple[list[float], int]]) -> None:
    counts, tested = Counts(), []
    for chances, accepted in verified:
        counts.add(draft(chances), accepted)
        tested += [(p, k < accepted) for k, p in enumerate(chances) if k <= accepted]
    for tenth, (number, foretold, right) in enumerate(counts.reliability):
        mine = [(p, r) for p, r in tested if min(int(p * BINS), BINS - 1) == tenth]
        assert (number, right) == (len(mine), sum(r for _, r in mine))
        assert foretold == pytest.approx(sum(p for p, _ in mine))
    assert counts.squared_error == pytest.approx(sum((r - p) ** 2 for p, r in tested))


def test_drift_is_accepted_over_foretold() -> None:
    counts = Counts()
    assert counts.drift() is None
    for i in range(2 * SETTLED):
        counts.add(draft([0.8, 0.5], "coder"), 2 if i % 2 else 1)
        counts.add(draft([0.1], "chat"), 0)
    assert counts.num_expected_tokens == pytest.approx(2 * SETTLED * (0.8 + 0.4 + 0.1))
    assert counts.drift("coder") == pytest.approx(1.5 / 1.2)
    assert counts.drift() == pytest.approx(1.5 / 1.3)
    assert counts.drift("chat") is None, "too few foretold"
    assert counts.drift("editor") is None
