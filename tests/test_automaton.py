"""The automaton against its brute-force twin, Oracle; large text: test_automaton_large.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agspec.draft.automaton import Automaton, Document
from agspec.draft.kernels import MAX_CONTEXT
from agspec.draft.oracle import Oracle
from agspec.errors import StoreError, TokensError
from agspec.tokens import as_tokens

ABSENT = 999_999


def rows(automaton: Automaton, context: Any) -> dict[int, tuple[int, int]]:
    return {row.token: (row.count, row.recent) for row in automaton.continuations(context)}


# --- small cases: every operation against the lists --------------------------------------------------------------

TOKENS = st.one_of(st.integers(0, 2), st.integers(0, 2**31 - 1))
GROWTH = st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 2), max_size=12)), max_size=12)
WIDE = st.lists(st.tuples(st.integers(0, 3), st.lists(TOKENS, max_size=12)), max_size=12)
MOTIFS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=7), min_size=2, max_size=3)
LONG = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 12)), min_size=2, max_size=7)


def grow(steps: list[tuple[int, list[int]]]) -> tuple[Automaton, Oracle]:
    automaton, oracle = Automaton(capacity=4096), Oracle(MAX_CONTEXT)
    opened: dict[int, tuple[Document, int]] = {}
    for name, tokens in steps:
        if name not in opened:
            opened[name] = automaton.open(), oracle.open()
        document, twin = opened[name]
        assert automaton.extend(document, tokens) == len(tokens)
        oracle.extend(twin, tokens)
    automaton.check()
    assert len(automaton) == sum(len(tokens) for _, tokens in steps)
    return automaton, oracle


def agree(automaton: Automaton, oracle: Oracle, context: list[int]) -> None:
    length = oracle.match(context)
    assert automaton.match(context).length == length
    context = context[-MAX_CONTEXT:]
    assert automaton.count(context) == len(oracle.occurrences(context))
    followers = oracle.continuations(context)
    assert rows(automaton, context) == followers
    context = context[len(context) - length :]
    while context and not (followers := oracle.continuations(context)):
        context = context[1:]
    found, place = automaton.latest(context)
    assert found.length == len(context)
    if context:
        assert place == max(recent for _, recent in followers.values()) - 1


@pytest.mark.parametrize("growth", [GROWTH, WIDE], ids=["3 tokens", "all tokens"])
def test_interleaved_documents(growth: st.SearchStrategy[Any]) -> None:
    @settings(max_examples=120, deadline=None)
    @given(growth, st.data())
    def case(steps: list[tuple[int, list[int]]], data: st.DataObject) -> None:
        automaton, oracle = grow(steps)
        known = sorted({token for _, tokens in steps for token in tokens} | {ABSENT})
        for context in data.draw(st.lists(st.lists(st.sampled_from(known), min_size=1, max_size=9), max_size=6)):
            agree(automaton, oracle, context)
        for document in oracle.documents:
            for end in range(1, len(document) + 1, 3):
                agree(automaton, oracle, document[max(0, end - 7) : end])

    case()


@settings(max_examples=50, deadline=None)
@given(MOTIFS, LONG, st.data())
def test_long_contexts_of_repeating_text(
    motifs: list[list[int]], program: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    automaton, oracle = grow([(name, motifs[which % len(motifs)] * times) for name, which, times in program])
    for document in oracle.documents:
        for _ in range(2):
            end = data.draw(st.integers(1, len(document)))
            length = data.draw(st.sampled_from([1, 5, 40, MAX_CONTEXT - 1, MAX_CONTEXT, MAX_CONTEXT + 9]))
            agree(automaton, oracle, document[max(0, end - length) : end])


def test_longest_context_whose_tail_also_followed_something_else() -> None:
    """The 65 tokens of context and continuation are told apart by their first alone."""
    tail = list(range(100, 100 + MAX_CONTEXT - 1))
    automaton, oracle = grow([(0, [1, *tail, 7, 8]), (1, [2, *tail, 7, 8]), (2, [3, *tail, 7]), (0, [2, *tail, 7])])
    for first in (1, 2, 3):
        agree(automaton, oracle, [first, *tail])
    assert rows(automaton, [2, *tail]) == {7: (2, len(automaton) - 1)}


# --- resuming ---------------------------------------------------------------------------------------------------


def test_resume_goes_on_after_text_of_another_automaton() -> None:
    head, rest = [5, 6, 7, 8] * 30, [9, 10, 5, 6]
    second = Automaton(capacity=1000)
    document = second.resume(as_tokens(head))
    assert document is not None
    assert second.extend(document, rest) == len(rest)
    assert rows(second, head[-MAX_CONTEXT:]) == {9: (1, 0)}
    assert rows(second, [8, 9]) == {10: (1, 1)}
    assert second.count([5, 6]) == 1, "what was counted elsewhere is not counted here"
    assert len(second) == len(rest)
    second.check()


def test_resume_says_when_there_is_no_room() -> None:
    full = Automaton(capacity=1)
    document = full.open()
    assert 0 < full.extend(document, range(10_000)) < 10_000
    assert full.resume(as_tokens(range(20_000, 20_100))) is None
    full.check()


# --- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "line"),
    [
        ([[1, 2], [3, 4]], "want int32 1-D, got int64 2-D"),
        ([1.5], "want int32 1-D, got float64 1-D"),
        (np.zeros(3, bool), "want int32 1-D, got bool 1-D"),
        (["a"], "want int32 1-D, got <U1 1-D"),
        (7, "want int32 1-D, got int64 0-D"),
    ],
)
def test_what_is_no_token_array(tokens: Any, line: str) -> None:
    automaton = Automaton(capacity=10)
    document = automaton.open()
    for call in (lambda: automaton.extend(document, tokens), lambda: automaton.match(tokens)):
        with pytest.raises(TokensError) as caught:
            call()
        assert str(caught.value) == line
    assert len(automaton) == 0


def test_contract() -> None:
    with pytest.raises(StoreError) as caught:
        Automaton(capacity=0)
    assert str(caught.value) == "want a capacity of at least 1 token, got 0"
    with pytest.raises(StoreError) as caught:
        Automaton(capacity=1).continuations([1] * 65)
    assert str(caught.value) == "want a context of at most 64 tokens, got 65"


def test_check_finds_a_broken_link() -> None:
    automaton, _ = grow([(0, [1, 2, 1, 3])])
    automaton.arrays.states[2, 1] = automaton.num_states - 1
    with pytest.raises(StoreError) as caught:
        automaton.check()
    assert str(caught.value) == "automaton of 4 tokens breaks the rule: a link leads to a shorter state"
