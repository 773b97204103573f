"""The suffix array and the frozen lookup against brute force over plain lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agspec.draft.frozen import FrozenLookup, Sorted, heads_of, separated, sorted_order
from agspec.draft.kernels import MAX_CONTEXT
from agspec.draft.oracle import Oracle
from agspec.draft.suffix_array import SEPARATOR, first_unsorted, merge, next_shorter, search, start_merge, widen
from agspec.errors import StoreError
from agspec.tokens import Tokens, as_tokens

VOCABULARY = 6
DOCUMENTS = st.lists(st.lists(st.integers(0, VOCABULARY - 2), min_size=1, max_size=30), min_size=1, max_size=6)
CONTEXT = st.lists(st.integers(0, VOCABULARY - 1), min_size=0, max_size=12)


def arrays(documents: list[list[int]]) -> Sorted:
    tokens = separated([as_tokens(document) for document in documents])
    order = sorted_order(tokens)
    return Sorted(tokens, order, heads_of(np.bincount(tokens[order], minlength=VOCABULARY)))


def lookup(documents: list[list[int]]) -> FrozenLookup:
    return FrozenLookup(arrays(documents), num_tokens=sum(map(len, documents)))


def backwards(tokens: list[int], place: int) -> tuple[list[int], int]:
    """What a position sorts by."""
    key = []
    while tokens[place - len(key)] != SEPARATOR and len(key) < MAX_CONTEXT:
        key.append(tokens[place - len(key)])
    return ([*key, SEPARATOR] if len(key) < MAX_CONTEXT else key), place


def slow_order(tokens: Tokens) -> list[int]:
    text = tokens.tolist()
    places = [i for i in range(len(text) - 1) if text[i] != SEPARATOR and text[i + 1] != SEPARATOR]
    return sorted(places, key=lambda place: backwards(text, place))


def endings(text: list[int], context: list[int], length: int) -> set[int]:
    """Positions that something follows and that end with the newest ``length`` tokens of ``context``."""
    wanted = context[len(context) - length :]
    return {
        end - 1
        for end in range(length, len(text) - 1)
        if text[end - length : end] == wanted and text[end] != SEPARATOR and text[end - 1] != SEPARATOR
    }


@given(DOCUMENTS)
@settings(deadline=None, max_examples=150)
def test_order_is_the_slow_one(documents: list[list[int]]) -> None:
    made = arrays(documents)
    assert made.order.tolist() == slow_order(made.tokens)
    assert first_unsorted(made.tokens, made.order) == made.order.size
    for token in range(VOCABULARY):
        held = made.order[made.heads[token] : made.heads[token + 1]]
        assert set(made.tokens[held].tolist()) <= {token}


@pytest.mark.parametrize("text", ["alike", "periodic", "random"])
def test_order_of_large_groups(text: str) -> None:
    """Texts that are equal over MAX_CONTEXT tokens go by position, as the merge has it."""
    rng = np.random.default_rng(5)
    body = {"alike": np.zeros(700), "periodic": np.tile([1, 2, 3], 300), "random": rng.integers(0, 3, 1500)}[text]
    made = arrays([body.astype(int).tolist(), body[:150].astype(int).tolist()])
    assert made.order.tolist() == slow_order(made.tokens)


@given(DOCUMENTS, CONTEXT)
@settings(deadline=None, max_examples=300)
def test_search_finds_the_longest_ending_and_its_interval(documents: list[list[int]], context: list[int]) -> None:
    made = arrays(documents)
    text, asked = made.tokens.tolist(), as_tokens(context)
    length, found = search(*made, asked)
    assert length == max((n for n in range(1, len(context) + 1) if endings(text, context, n)), default=0)
    low, high = found, found + 1
    known: set[int] = set()
    while length:
        low, high = widen(*made, asked, length, low, high)
        held = set(made.order[low:high].tolist())
        assert held == endings(text, context, length)
        assert held > known
        known = held
        shorter = next_shorter(*made, asked, low, high)
        assert all(endings(text, context, n) == held for n in range(shorter + 1, length))
        length = shorter
    if context:
        assert known == endings(text, context, 1)


@given(st.lists(DOCUMENTS, min_size=1, max_size=5))
@settings(deadline=None, max_examples=80)
def test_merged_runs_are_the_order_of_all(shards: list[list[list[int]]]) -> None:
    whole = arrays([document for shard in shards for document in shard])
    runs, base = [], 0
    for shard in shards:
        part = arrays(shard)
        runs.append(part.order + np.int32(base))
        base += part.tokens.size - 1
    ends = np.cumsum([run.size for run in runs])
    at = ends - [run.size for run in runs]
    heads, tree = np.empty(at.size, np.int64), np.empty(2 * at.size, np.int64)
    every = np.concatenate(runs)
    start_merge(whole.tokens, every, at, ends, heads, tree)
    merged: list[int] = []
    out = np.empty(7, np.int32)
    while n := merge(whole.tokens, every, at, ends, heads, tree, out):
        merged += out[:n].tolist()
    assert merged == whole.order.tolist()


@given(DOCUMENTS, CONTEXT, st.integers(1, 9))
@settings(deadline=None, max_examples=300)
def test_a_draft_continues_the_longest_match(documents: list[list[int]], context: list[int], limit: int) -> None:
    oracle = Oracle(MAX_CONTEXT)
    for document in documents:
        oracle.extend(oracle.open(), document)
    goes_on = [n for n in range(1, len(context) + 1) if oracle.continuations(context[-n:])]
    found = lookup(documents).draft(as_tokens(context), limit=limit, floor=0.0)
    if not goes_on:
        assert found is None
        return
    assert found is not None
    assert found.match_length == goes_on[-1]
    assert 1 <= found.tokens.size == found.probs.size == found.counts.size <= limit
    assert np.all((found.probs > 0) & (found.probs <= 1))
    text = [*context, *found.tokens.tolist()]
    shortest = len(context) - 1
    assert oracle.occurrences(text[shortest:]), "the whole draft stands somewhere behind the newest token"
    best = {token: count for token, (count, _) in oracle.continuations(context[-goes_on[-1] :]).items()}
    assert found.counts[0] == sum(best.values())
    if len(best) == 1 and len(goes_on) == 1:
        assert found.tokens[0] in best


def test_a_long_match_is_followed_where_it_stands() -> None:
    rng = np.random.default_rng(1)
    noise = [rng.integers(0, 5, 200).tolist() for _ in range(20)]
    own = rng.integers(0, 5, 60).tolist()
    found = lookup([*noise, own]).draft(as_tokens(own[:40]), limit=10, floor=0.02)
    assert found is not None
    assert found.match_length == 40
    assert found.tokens.tolist() == own[40:50]
    assert found.counts.tolist() == [1] * 10


def test_majority_wins_and_longer_matches_weigh_more() -> None:
    often = [[1, 2, 3]] * 6 + [[1, 2, 4]] * 2
    found = lookup(often).draft(as_tokens([1, 2]), limit=1, floor=0.02)
    assert found is not None
    assert (found.tokens.tolist(), found.counts.tolist()) == ([3], [8])
    assert 0.5 < found.probs[0] < 0.75
    longer = [[0, 5, 1, 2, 4], [0, 5, 1, 2, 4], *[[3, 2, 3]] * 4]
    found = lookup(longer).draft(as_tokens([0, 5, 1, 2]), limit=1, floor=0.02)
    assert found is not None
    assert found.tokens.tolist() == [4]


def test_documents_do_not_match_across_their_borders() -> None:
    found = lookup([[1, 2, 3], [4, 5, 1], [3, 0]]).draft(as_tokens([2, 3]), limit=8, floor=0.0)
    assert found is not None
    assert (found.match_length, found.tokens.tolist()) == (1, [0])


def test_a_context_longer_than_what_is_compared() -> None:
    rng = np.random.default_rng(2)
    text = rng.integers(0, 5, 300).tolist()
    found = lookup([text]).draft(as_tokens(text[:200]), limit=20, floor=0.02)
    assert found is not None
    assert (found.match_length, found.tokens.tolist()) == (MAX_CONTEXT, text[200:220])


@pytest.mark.parametrize("context", [[], [VOCABULARY], [VOCABULARY + 10**6], [1, -1], [0]])
def test_unknown_contexts_have_no_draft(context: list[int]) -> None:
    assert lookup([[1, 2, 3]]).draft(as_tokens(context), limit=8, floor=0.0) is None


def test_it_stops_at_the_floor_and_same_calls_same_drafts() -> None:
    rng = np.random.default_rng(3)
    store = lookup([rng.integers(0, 5, 4000).tolist()])
    for _ in range(100):
        context = rng.integers(0, 5, 20).astype(np.int32)
        found, again = (store.draft(context, limit=48, floor=0.3) for _ in range(2))
        if found is not None and again is not None:
            assert found.tokens.tolist() == again.tokens.tolist()
            assert np.prod(found.probs) >= 0.3
            whole = store.draft(context, limit=48, floor=0.02)
            assert whole is not None
            assert whole.tokens[: found.tokens.size].tolist() == found.tokens.tolist()


def test_a_frozen_store_takes_nothing_in() -> None:
    store = lookup([[1, 2, 3]])
    line = "want a store that grows, got a frozen corpus: it takes nothing in"
    with pytest.raises(StoreError, match=line):
        store.open()
    with pytest.raises(StoreError, match=line):
        store.extend(None, as_tokens([1]))
    store.close(None)
    assert (store.num_tokens, store.num_evicted_tokens) == (3, 0)
    assert store.memory_bytes == 4 * (5 + 2 + VOCABULARY + 1)
