"""What of a prompt is new to a session: resent, moved, condensed, and sub-agents taking turns."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agspec.draft.novel import REMEMBERED, Novelty, common_prefix
from agspec.tokens import EMPTY, Tokens, as_tokens

RESYNC = 400
"""Tokens read again after a place where text changed, at most: the chunk there, mean 64."""


def text(seed: int, n: int) -> Tokens:
    return np.random.default_rng(seed).integers(0, 50_000, n).astype(np.int32)


def join(*parts: Tokens) -> Tokens:
    return np.concatenate(parts)


def covered(spans: list[tuple[int, int]]) -> int:
    return sum(end - start for start, end in spans)


def in_order(spans: list[tuple[int, int]], size: int) -> None:
    assert all(0 <= start < end <= size for start, end in spans)
    assert all(end < start for (_, end), (start, _) in pairwise(spans)), "neighbours are joined"


def turn(novelty: Novelty, prompt: Tokens, output: Tokens = EMPTY) -> list[tuple[int, int]]:
    spans = novelty.spans(prompt)
    in_order(spans, prompt.size)
    novelty.remember(prompt, output)
    return spans


def test_first_prompt_is_all_new() -> None:
    prompt = text(1, 5000)
    assert turn(Novelty(), prompt) == [(0, 5000)]
    assert turn(Novelty(), EMPTY) == []


def test_prompt_resent_whole() -> None:
    novelty, prompt = Novelty(), text(1, 5000)
    turn(novelty, prompt)
    assert turn(novelty, prompt) == []
    assert turn(novelty, prompt[:3000].copy()) == []


def test_prompt_resent_while_the_first_still_runs() -> None:
    novelty, prompt = Novelty(), text(1, 5000)
    assert novelty.spans(prompt) == [(0, 5000)]
    assert novelty.spans(prompt) == [], "n=2: two requests of one prompt"


def test_history_that_only_grows() -> None:
    """Each turn resends everything and adds: only what neither prompt nor output held is new."""
    novelty, history = Novelty(), text(0, 2000)
    assert turn(novelty, history, text(50, 300)) == [(0, 2000)]
    for i in range(1, 12):
        history = join(history, text(49 + i, 300))
        start = history.size
        history = join(history, text(i, 500))
        assert turn(novelty, history, text(50 + i, 300)) == [(start, start + 500)]


def test_moved_blocks() -> None:
    """Aider puts the files it edits at the end: blocks change places, nothing in them is new."""
    blocks = [text(i, 1500) for i in range(5)]
    novelty = Novelty()
    assert covered(turn(novelty, join(*blocks))) == 7500
    moved = join(*[blocks[i] for i in (3, 1, 4, 0, 2)])
    assert 0 < covered(turn(novelty, moved)) <= 5 * RESYNC
    assert turn(novelty, join(*[blocks[i] for i in (3, 1, 4, 0, 2)])) == []


def test_condensed_middle() -> None:
    """Head and tail stay, the middle becomes a summary: that is new, and the chunk in which the tail begins."""
    head, middle, tail, summary = text(1, 1200), text(2, 4000), text(3, 3000), text(4, 200)
    novelty = Novelty()
    turn(novelty, join(head, middle, tail))
    spans = turn(novelty, join(head, summary, tail))
    assert len(spans) == 1
    assert spans[0][0] == 1200
    assert 1400 <= spans[0][1] <= 1400 + RESYNC


def test_an_edit_in_a_file() -> None:
    before, after = text(1, 3000), text(1, 3000)
    after[1500] = 60_000
    novelty = Novelty()
    turn(novelty, join(text(9, 500), before))
    spans = turn(novelty, join(text(9, 500), text(10, 40), after))
    assert any(start <= 540 + 1500 < end for start, end in spans), "what was edited is new"
    assert covered(spans) <= 40 + 3 * RESYNC


def test_interleaved_sub_agents() -> None:
    """As many histories as are remembered grow by turns: each finds its own as prefix."""
    novelty = Novelty()
    histories = [join(text(100 + i, 900), text(7, 600)) for i in range(REMEMBERED)]
    for history in histories:
        turn(novelty, history)
    for step in range(6):
        for i, history in enumerate(histories):
            start = history.size
            histories[i] = join(history, text(1000 + 10 * step + i, 200))
            assert turn(novelty, histories[i]) == [(start, start + 200)]


def test_more_sub_agents_than_are_remembered() -> None:
    novelty = Novelty()
    histories = [text(100 + i, 900) for i in range(REMEMBERED + 3)]
    for history in histories:
        turn(novelty, history)
    for i, history in enumerate(histories):
        grown = join(history, text(1000 + i, 200))
        assert 200 <= covered(turn(novelty, grown)) <= 200 + RESYNC


def test_outputs_are_known_when_they_come_back() -> None:
    novelty = Novelty()
    turn(novelty, text(1, 400), text(2, 2000))
    assert covered(turn(novelty, join(text(3, 100), text(2, 2000)))) <= 100 + RESYNC


@pytest.mark.parametrize("frequent", [1, 10, 198, 500, 7777])
def test_chunks_are_neither_tiny_nor_huge_whatever_is_frequent(frequent: int) -> None:
    """Text is not uniform: a frequent token (a newline) must not be what cuts, or what seldom does."""
    rng = np.random.default_rng(frequent)
    prompt = np.where(rng.random(20_000) < 0.12, frequent, rng.zipf(1.3, 20_000) % 30_000).astype(np.int32)
    sizes = [end - start for start, end, _ in Novelty._cut(prompt, 0)]
    assert 32 <= np.mean(sizes) <= 128
    assert sum(sizes) == prompt.size


def test_memory_is_told() -> None:
    novelty = Novelty()
    assert novelty.memory_bytes == 0
    turn(novelty, text(1, 5000), text(2, 100))
    assert novelty.memory_bytes > 5100 * 4


BLOCKS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40), st.integers(1, 60)), max_size=6)
TURNS = st.lists(st.tuples(BLOCKS, st.integers(0, 30), st.booleans()), min_size=1, max_size=7)
POOL = [as_tokens(range(1000 * i, 1000 * i + 100)) for i in range(6)]
"""Blocks without a common token, so that a token tells where it was seen."""


@settings(max_examples=200, deadline=None)
@given(TURNS)
def test_no_token_gets_lost(turns: list[tuple[list[tuple[int, int, int]], int, bool]]) -> None:
    """Every token of a prompt lies in a span, or was read before in a prompt or an output."""
    novelty = Novelty()
    read: set[int] = set()
    earlier: list[Tokens] = []
    for number, (blocks, output_size, resend) in enumerate(turns):
        parts = [POOL[i][start : start + size] for i, start, size in blocks]
        if resend and earlier:
            parts.insert(0, earlier[-1])
        prompt = join(*parts) if parts else EMPTY
        spans = novelty.spans(prompt)
        in_order(spans, prompt.size)
        new = {int(token) for start, end in spans for token in prompt[start:end]}
        assert set(prompt.tolist()) <= read | new
        output = as_tokens(range(100_000 + 100 * number, 100_000 + 100 * number + output_size))
        novelty.remember(prompt, output)
        read |= set(prompt.tolist()) | set(output.tolist())
        earlier.append(join(prompt, output))
        assert novelty.spans(prompt) == [], "what was read is read"


@given(st.lists(st.integers(0, 2), max_size=9), st.lists(st.integers(0, 2), max_size=9))
def test_common_prefix(a: list[int], b: list[int]) -> None:
    n = common_prefix(as_tokens(a), as_tokens(b))
    assert a[:n] == b[:n]
    assert n == min(len(a), len(b)) or a[n] != b[n]
