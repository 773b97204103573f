"""Replay in batches: every session in full, in lock-step, and the same each time; costs; the oracle."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from agspec.draft.cost import StepCost
from agspec.errors import InputError
from agspec.replay.costs import NamedCost
from agspec.replay.methods import METHODS, Step
from agspec.replay.plan import PlannedCall, by_session
from agspec.replay.simulate import replay, simulate
from agspec.replay.trace import read_trace
from agspec.resources import data_dir
from agspec.settings import Settings
from agspec.tokens import EMPTY, Tokenizer, Tokens, load_tokenizer
from tests.replaying import END, EVERY, call, make_tokenizer, random_calls


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return make_tokenizer()


class Spy:
    """Drafts what is right, ``good`` tokens of it, and writes down what it is told."""

    counts = None

    def __init__(self, good: int = 0) -> None:
        self.good = good
        self.calls: dict[str, PlannedCall] = {}
        self.seen: dict[str, list[int]] = {}
        self.events: list[Any] = []

    def start(self, request: str, call: PlannedCall) -> None:
        self.calls[request] = call
        self.seen[request] = []
        self.events.append(("start", request))

    def propose(self, steps: Sequence[Step]) -> list[Tokens]:
        self.events.append([step.request for step in steps])
        drafts = []
        for step in steps:
            planned = self.calls[step.request]
            assert step.sequence[: planned.prompt.size].tolist() == planned.prompt.tolist()
            self.seen[step.request] += step.sequence[step.sequence.size - step.num_new :].tolist()
            out = step.sequence.size - planned.prompt.size
            drafts.append(planned.tape[out : out + min(self.good, step.room)] if self.good else EMPTY)
        return drafts

    def finish(self, request: str) -> None:
        self.events.append(("finish", request))


UNEVEN = [
    call([1], [1, END], session="a"),
    call([2], [1, 2, 3, END], session="b"),
    call([3], [1, 2, END], session="a"),
    call([4], [1, END], session="c"),
]


def test_slots_take_sessions_in_turn_and_go_in_lock_step() -> None:
    spy = Spy()
    tally = replay(spy, UNEVEN, max_draft=8, batch=2)
    assert spy.events == [
        ("start", "0"), ("start", "1"), ["0", "1"], ["0", "1"], ("finish", "0"),
        ("start", "2"), ["2", "1"], ["2", "1"], ("finish", "1"),
        ("start", "3"), ["2", "3"], ("finish", "2"), ["3"], ("finish", "3"),
    ]  # fmt: skip
    assert [spy.calls[str(i)] for i in range(4)] == [UNEVEN[0], UNEVEN[1], UNEVEN[2], UNEVEN[3]]
    assert tally.step_shapes == {(2, 0): 5, (1, 0): 1}
    assert (tally.num_steps, tally.num_tokens, tally.mean_batch) == (11, 11, 11 / 6)
    assert len(tally.propose_us) == 5, "in the last step there is nobody left to draft for"


def test_drafts_of_all_rows_are_verified_in_one_step() -> None:
    tally = replay(Spy(good=2), UNEVEN, max_draft=8, batch=4)
    # a: 1 | END, then 1 | 2 END; b: 1 | 2 3 END; c: 1 | END. A draft ends at the tape's end.
    assert tally.step_shapes == {(3, 0): 1, (3, 4): 1, (1, 0): 1, (1, 2): 1}
    assert (tally.num_steps, tally.num_drafts, tally.num_draft_tokens, tally.num_accepted_tokens) == (8, 4, 6, 6)


def test_batch_1_takes_the_calls_as_they_come() -> None:
    spy = Spy()
    replay(spy, UNEVEN, max_draft=8)
    assert list(spy.calls.values()) == UNEVEN


@pytest.mark.parametrize("batch", [1, 2, 4, 9])
@pytest.mark.parametrize("good", [0, 1, 3])
def test_every_session_comes_in_full(batch: int, good: int) -> None:
    calls = random_calls(8, n=20)
    spy = Spy(good)
    tally = replay(spy, calls, max_draft=8, batch=batch)
    for request, planned in spy.calls.items():
        assert spy.seen[request][: planned.tape.size] == planned.tape.tolist()
    order = list(spy.calls.values())
    assert sorted(map(id, order)) == sorted(map(id, calls))
    for session in by_session(calls):
        mine = [next(i for i, planned in enumerate(order) if planned is other) for other in session]
        assert mine == sorted(mine), "a session's calls stay in order"
    assert tally.num_steps == sum(rows * n for (rows, _), n in tally.step_shapes.items())
    assert tally.num_draft_tokens == sum(drafted * n for (_, drafted), n in tally.step_shapes.items())
    assert max(rows for rows, _ in tally.step_shapes) == min(batch, 3)


@pytest.mark.parametrize("method", EVERY)
def test_a_batch_is_accounted_for_and_the_same_twice(method: str, tokenizer: Tokenizer) -> None:
    calls = random_calls(9, n=24)
    tallies, logs = [], []
    for _ in range(2):
        log: list[Tokens] = []
        made = METHODS[method](Settings(cost_ratio=0.03), tokenizer)
        tally = replay(made, calls, max_draft=48, batch=4, log=log)
        tallies.append({**vars(copy.copy(tally)), "propose_us": None})
        logs.append([draft.tolist() for draft in log])
    assert tallies[0] == tallies[1]
    assert logs[0] == logs[1]
    assert tally.num_tokens == sum(planned.tape.size for planned in calls)
    assert tally.num_accepted_tokens == tally.accepted_at.total()
    for key in ("num_steps", "num_tokens", "num_draft_tokens", "num_accepted_tokens"):
        assert sum(row[key] for row in tally.by_role.values()) == getattr(tally, key)
    if made.counts is not None:
        assert made.counts.num_accepted_tokens == tally.num_accepted_tokens
        assert tally.num_steps + tally.num_accepted_tokens == tally.num_tokens


def test_a_method_of_one_request_alone_does_the_same_in_a_batch(tokenizer: Tokenizer) -> None:
    calls = random_calls(10)
    for method in ("none", "ngram", "sam"):
        one, four = (
            replay(METHODS[method](Settings(), tokenizer), calls, max_draft=48, batch=batch) for batch in (1, 4)
        )
        assert (one.num_steps, one.num_draft_tokens, one.by_role) == (
            four.num_steps,
            four.num_draft_tokens,
            four.by_role,
        )
        ratio = StepCost.from_ratio(0.1)
        assert one.time(ratio) == pytest.approx(four.time(ratio)), "a bare ratio knows no batch"


def test_all_rows_reach_the_drafter_in_one_call(tokenizer: Tokenizer, monkeypatch: Any) -> None:
    method: Any = METHODS["agspec"](Settings(), tokenizer)
    sizes, propose = [], method.drafter.propose
    monkeypatch.setattr(method.drafter, "propose", lambda rows: sizes.append(len(rows)) or propose(rows))
    tally = replay(method, random_calls(11), max_draft=48, batch=3)
    assert len(sizes) == tally.step_shapes.total()
    assert max(sizes) == 3


# --- the oracle ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 4])
def test_oracle_drafts_what_is_right_and_beats_agspec(batch: int, tokenizer: Tokenizer) -> None:
    for seed in range(12, 15):
        calls = random_calls(seed, n=24)
        settings = Settings(cost_ratio=0.01)
        agspec, oracle = (
            replay(METHODS[name](settings, tokenizer), calls, max_draft=48, batch=batch)
            for name in ("agspec", "oracle")
        )
        assert oracle.num_draft_tokens == oracle.num_accepted_tokens > 0
        assert oracle.mean_acceptance_length >= agspec.mean_acceptance_length > 1


@pytest.mark.parametrize("batch", [1, 2])
def test_oracle_beats_agspec_on_shipped_sessions(batch: int) -> None:
    result = simulate(
        [read_trace(data_dir("replays") / "aider-own.jsonl.gz")],
        tokenizer=load_tokenizer("embedded"),
        tool_wire="json",
        methods=["agspec", "oracle"],
        costs=[NamedCost.of_ratio(0.01), NamedCost.of_profile("h100-7b")],
        settings=Settings(cost_ratio=0.4),
        batch=batch,
    )
    *ours, oracle, again = result["rows"]
    assert [row.get("cost_ratio", row.get("cost")) for row in result["rows"]] == [0.01, "h100-7b"] * 2
    assert {row["batch"] for row in result["rows"]} == {batch}
    assert oracle["num_steps"] == again["num_steps"]
    for row in ours:
        assert 1.2 < row["mean_acceptance_length"] <= oracle["mean_acceptance_length"]
    assert oracle["num_draft_tokens"] == oracle["num_accepted_tokens"]
    assert result["settings"]["costs"] == [0.01, "h100-7b"]
    assert not {"cost", "cost_ratio"} & set(result["settings"])


# --- costs -----------------------------------------------------------------------------------------------------------


def test_a_cost_takes_the_place_of_the_settings() -> None:
    ratio, profile = NamedCost.of_ratio(0.2), NamedCost.of_profile("h100-7b")
    told = profile.tell(Settings(cost_ratio=0.4))
    assert (told.cost_ratio, str(told.cost)) == (None, "h100-7b")
    told = ratio.tell(told)
    assert (told.cost_ratio, told.cost) == (0.2, None)
    assert ratio.steps == StepCost.from_ratio(0.2)
    assert NamedCost.of_profile("h100-1.5b").names == {"cost": "h100-1.5b"}
    with pytest.raises(InputError):
        NamedCost.of_profile("no-such")


def test_rows_are_timed_by_the_profile_at_the_batch(tokenizer: Tokenizer) -> None:
    cost = NamedCost.of_profile("h100-7b")
    calls = random_calls(15)
    none, sam = (replay(METHODS[name](Settings(), tokenizer), calls, max_draft=48, batch=3) for name in ("none", "sam"))
    row = sam.row(cost.steps, none)
    want = np.sum([n * cost.steps.step(*shape) for shape, n in sam.step_shapes.items()])
    assert row["model_time"] == pytest.approx(want)
    assert row["speedup"] == pytest.approx(row["model_time_none"] / row["model_time"])
    assert none.row(cost.steps, none)["speedup"] == 1.0
