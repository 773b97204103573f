"""Replay: counts by hand, accounting, and the baselines against the code they stand for."""

from __future__ import annotations

import copy
from collections import Counter
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agspec.draft.cost import StepCost
from agspec.replay.costs import NamedCost
from agspec.replay.methods import METHODS, Ngram, Sam, Step
from agspec.replay.simulate import replay, simulate
from agspec.replay.tally import Tally
from agspec.replay.trace import Call, Message, Output, Trace
from agspec.settings import Settings
from agspec.tokens import Tokenizer, Tokens, as_tokens
from tests.replaying import END, EVERY, call, make_tokenizer, random_calls
from tests.support import needs_arctic

needs_vllm = pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return make_tokenizer()


BY_HAND = [
    call(range(1, 13), [20, 3, 4, 5, 6, 7, 8, 9, 50, END]),
    call([1, 2, 1, 2, 1], [2, 1, 2, END], role="chat"),
    call([5, 6, END, 7], [5, 6, END]),
]
COUNTS = {
    # steps of each call, drafts, drafted tokens, accepted tokens, the draft that each call verified
    "none": ((10, 4, 3), 0, 0, 0, [[], [], []]),
    "ngram": ((5, 2, 3), 3, 11, 8, [[5, 6, 7, 8, 9], [1, 2], [END, 7, 5, 6]]),
    "sam": ((4, 2, 2), 3, 17, 10, [[*range(4, 13), 20, 3], [1, 2], [6, END, 7, 5]]),
}


@pytest.mark.parametrize("method", sorted(COUNTS))
def test_E5_counts_by_hand(method: str, tokenizer: Tokenizer) -> None:
    steps, drafts, drafted, accepted, verified = COUNTS[method]
    tally = replay(METHODS[method](Settings(), tokenizer), BY_HAND, max_draft=48)
    assert (tally.num_tokens, tally.num_steps) == (17, sum(steps))
    assert (tally.num_drafts, tally.num_draft_tokens, tally.num_accepted_tokens) == (drafts, drafted, accepted)
    assert tally.mean_acceptance_length == 17 / sum(steps)
    assert tally.by_role["chat"]["num_steps"] == steps[1]
    assert tally.by_role["coder"]["num_steps"] == steps[0] + steps[2]
    assert tally.by_role["coder"]["num_tokens"] == 13
    for planned, num_steps, draft in zip(BY_HAND, steps, verified, strict=True):
        log: list[Tokens] = []
        one = replay(METHODS[method](Settings(), tokenizer), [planned], max_draft=48, log=log)
        assert one.num_steps == num_steps
        assert np.concatenate([as_tokens([]), *log[: one.num_drafts]]).tolist() == draft


def test_longest_draft_is_kept(tokenizer: Tokenizer) -> None:
    log: list[Tokens] = []
    replay(METHODS["sam"](Settings(), tokenizer), BY_HAND, max_draft=3, log=log)
    assert max(draft.size for draft in log) == 3
    log.clear()
    replay(METHODS["sam"](Settings(sam_length=2), tokenizer), BY_HAND, max_draft=48, log=log)
    assert max(draft.size for draft in log) == 2


def test_time_and_speedup() -> None:
    tally = Tally(num_steps=6, num_tokens=10, step_shapes=Counter({(2, 11): 1, (2, 0): 1, (1, 3): 2}))
    none = Tally(num_steps=10, num_tokens=10, step_shapes=Counter({(2, 0): 4, (1, 0): 2}))
    cost = StepCost((1, 2), (0.0, 10.0), ((10.0, 20.0), (14.0, 34.0)))
    assert tally.time(cost) == pytest.approx((14 + 2 * 5.5) + 14 + 2 * (10 + 3))
    assert none.time(cost) == pytest.approx(4 * 14 + 2 * 10)
    assert tally.speedup(cost, none) == pytest.approx(none.time(cost) / tally.time(cost))
    assert Tally().speedup(cost, none) == 0.0


@pytest.mark.parametrize("ratio", [0.01, 0.065, 0.4, 3.0])
@pytest.mark.parametrize("method", ["none", "sam", "agspec"])
def test_speedup_of_a_bare_ratio_at_batch_1(method: str, ratio: float, tokenizer: Tokenizer) -> None:
    """Over one token a step, where a step costs a + b x (1 + drafted tokens) and ratio = b / a."""
    calls = random_calls(6)
    none = replay(METHODS["none"](Settings(), tokenizer), calls, max_draft=48)
    tally = replay(METHODS[method](Settings(cost_ratio=ratio), tokenizer), calls, max_draft=48)
    time = tally.num_steps * (1 + ratio) + ratio * tally.num_draft_tokens
    cost = StepCost.from_ratio(ratio)
    assert tally.time(cost) == pytest.approx(time, rel=1e-12)
    assert tally.speedup(cost, none) == pytest.approx(tally.num_tokens * (1 + ratio) / time, rel=1e-12)


def test_drafts_stay_within_the_context_limit(tokenizer: Tokenizer) -> None:
    log: list[Tokens] = []
    replay(METHODS["sam"](Settings(), tokenizer), BY_HAND[:1], max_draft=48, context_limit=20, log=log)
    assert [draft.size for draft in log] == [20 - 14 - 1], "14 tokens are there, and the sampled one needs its place"


@pytest.mark.parametrize("method", EVERY)
def test_accounting(method: str, tokenizer: Tokenizer) -> None:
    calls = random_calls(3)
    log: list[Tokens] = []
    made = METHODS[method](Settings(cost_ratio=0.03), tokenizer)
    tally = replay(made, calls, max_draft=48, log=log)
    assert tally.num_tokens == sum(c.tape.size for c in calls)
    ended_inside_a_draft = tally.num_steps + tally.num_accepted_tokens - tally.num_tokens
    assert 0 <= ended_inside_a_draft <= len(calls)
    assert tally.num_drafts <= len(log) <= tally.num_drafts + len(calls), "each call drafts once more after its end"
    assert tally.num_draft_tokens == tally.drafted_at.total() <= sum(draft.size for draft in log)
    assert tally.num_accepted_tokens == tally.accepted_at.total()
    assert len(tally.propose_us) == tally.num_steps - len(calls)
    for key in ("num_steps", "num_tokens", "num_draft_tokens", "num_accepted_tokens"):
        assert sum(row[key] for row in tally.by_role.values()) == getattr(tally, key)
    if made.counts is not None:
        assert ended_inside_a_draft == 0, "the end of a turn is barred"
        assert sum(row["num_accepted_tokens"] for row in tally.by_source.values()) == tally.num_accepted_tokens
        assert made.counts.num_accepted_tokens == tally.num_accepted_tokens
    if method != "none":
        assert tally.num_accepted_tokens > 0.2 * tally.num_tokens


@pytest.mark.parametrize("method", EVERY)
def test_same_run_twice(method: str, tokenizer: Tokenizer) -> None:
    tallies = []
    for _ in range(2):
        tally = replay(METHODS[method](Settings(cost_ratio=0.03), tokenizer), random_calls(4), max_draft=48)
        tallies.append({**vars(copy.copy(tally)), "propose_us": None})
    assert tallies[0] == tallies[1]


def test_simulate_makes_a_row_for_each_trace_method_and_ratio(tokenizer: Tokenizer) -> None:
    words = " ".join(str(i % 90) for i in range(200))
    calls = tuple(
        Call(session="s", messages=(Message(role="user", content=words),), output=Output(content=words[20:200]))
        for _ in range(3)
    )
    traces = [Trace(name=name, kind="test", calls=calls) for name in ("one", "two")]
    options: Any = {"tokenizer": tokenizer, "tool_wire": "json", "settings": Settings()}
    options["costs"] = [NamedCost.of_ratio(0.03), NamedCost.of_ratio(0.27)]
    result = simulate(traces, methods=["none", "sam", "agspec"], **options)
    keys = [(row["trace"], row["method"], row["cost_ratio"]) for row in result["rows"]]
    assert keys == [(t, m, r) for t in ("one", "two") for m in ("none", "sam", "agspec") for r in (0.03, 0.27)]
    assert result["missing"] == {}
    assert result["settings"]["tokenizer"] == "words"
    for row in result["rows"]:
        r, steps = row["cost_ratio"], row["num_steps"]
        cost = steps * (1 + r) + r * row["num_draft_tokens"]
        assert row["speedup"] == pytest.approx(row["num_tokens"] * (1 + r) / cost, rel=1e-3)
        assert row["mean_acceptance_length"] == pytest.approx(row["num_tokens"] / steps, rel=1e-3)
    again = simulate(traces, methods=["none", "sam", "agspec"], **options)
    for first, second in zip(result["rows"], again["rows"], strict=True):
        assert {**first, "propose_us": 0} == {**second, "propose_us": 0}
    one, two = ([row for row in result["rows"] if row["trace"] == name] for name in ("one", "two"))
    for first, second in zip(one, two, strict=True):
        assert {**first, "trace": "", "propose_us": 0} == {**second, "trace": "", "propose_us": 0}, "each starts cold"


# --- the baselines are what they say -----------------------------------------------------------------------------

SEQUENCES = st.tuples(
    st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(1, 4), st.integers(0, 4), st.integers(1, 7)
)


@needs_vllm
def test_ngram_is_vllms_own_kernel() -> None:
    from vllm.v1.spec_decode.ngram_proposer import _find_longest_matched_ngram_and_propose_tokens as kernel

    @settings(max_examples=400, deadline=None)
    @given(SEQUENCES)
    def case(drawn: tuple[list[int], int, int, int]) -> None:
        values, shortest, more, length = drawn
        sequence = as_tokens(values)
        method = Ngram(Settings(ngram_min=shortest, ngram_max=shortest + more, ngram_length=length))
        for end in range(1, sequence.size + 1):
            want = kernel(sequence[:end], shortest, shortest + more, 10_000, length)
            assert method.propose([Step("", sequence[:end], 1, 48)])[0].tolist() == want.tolist()

    case()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=60))
def test_sam_is_the_longest_and_latest_match(values: list[int]) -> None:
    sequence, prompt = as_tokens(values), len(values) // 2
    method = Sam(Settings(sam_length=5))
    method.start("", call(values[:prompt], values[prompt:]))
    for end in range(prompt + 1, len(values) + 1):
        want: list[int] = []
        for n in range(end - 1, 0, -1):
            ends = [i for i in range(n, end) if values[i - n : i] == values[end - n : end]]
            if ends:
                want = values[ends[-1] : min(end, ends[-1] + 5)]
                break
        assert method.propose([Step("", sequence[:end], 1, 48)])[0].tolist() == want


@pytest.mark.parametrize("vocabulary", [50, 50_000])
def test_sam_in_a_prompt_longer_than_one_segment(vocabulary: int) -> None:
    """Positions are those of the whole sequence, wherever the text lies."""
    rng = np.random.default_rng(vocabulary)
    prompt = rng.integers(0, vocabulary, 150_000).astype(np.int32)
    places = (1000, 60_000, 66_000, 100_000, 149_000)
    for place in places:
        method = Sam(Settings())
        method.start("", call(prompt, []))
        sequence = np.concatenate((prompt, prompt[place : place + 20]))
        draft = method.propose([Step("", sequence, 20, 48)])[0]
        assert draft.tolist() == prompt[place + 20 : place + 60].tolist()


@needs_arctic
def test_suffix_is_the_cache_as_vllm_drives_it(tokenizer: Tokenizer) -> None:
    """vLLM 0.32, v1/spec_decode/suffix_decoding.py: start, add what was sampled, speculate on the last 24 tokens."""
    from arctic_inference.suffix_decoding import SuffixDecodingCache

    calls = random_calls(5)
    log: list[Tokens] = []
    replay(METHODS["suffix"](Settings(), tokenizer), calls, max_draft=48, log=log)
    cache, direct = SuffixDecodingCache(max_tree_depth=24, max_cached_requests=10_000), []
    for number, planned in enumerate(calls):
        tape, end, new = planned.tape.tolist(), 0, 1
        cache.start_request(number, planned.prompt)
        while True:
            sampled = tape[end : end + new]
            end += len(sampled)
            cache.add_active_response(number, sampled)
            pattern = np.concatenate((planned.prompt, planned.tape[:end]))[-24:]
            draft = cache.speculate(number, pattern, max_spec_tokens=24, max_spec_factor=1.0, min_token_prob=0.1)
            if draft.token_ids:
                direct.append(draft.token_ids)
            if end == len(tape):
                break
            right = 0
            while right < len(draft.token_ids) and tape[end + right : end + right + 1] == [draft.token_ids[right]]:
                right += 1
            new = right + 1
        cache.stop_request(number)
    assert [draft.tolist() for draft in log] == direct
    assert len(direct) > 50
