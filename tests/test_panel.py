"""A panel gives back the candidates that were put into it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from agspec.draft.caps import MAX_DRAFT
from agspec.draft.lookup import Candidate
from agspec.draft.names import SOURCE_NAMES
from agspec.draft.panel import NUM_SOURCES, Panel
from agspec.tokens import as_tokens
from tests.support import put

TOKEN = st.tuples(st.integers(0, 1 << 20), st.floats(0, 1), st.integers(1, 99), st.integers(0, 99))
ROUNDS = st.dictionaries(
    st.integers(0, NUM_SOURCES - 1),
    st.tuples(st.lists(TOKEN, min_size=1, max_size=MAX_DRAFT), st.integers(0, 64)),
)


def candidate(values: list[tuple[int, float, int, int]], length: int) -> Candidate:
    tokens, probs, counts, hits = zip(*values, strict=True)
    return Candidate(as_tokens(tokens), np.array(probs), length, as_tokens(counts), as_tokens(hits))


@settings(deadline=None)
@given(st.lists(ROUNDS, min_size=1, max_size=3))
def test_candidates_come_back_by_source(rounds: list[dict[int, tuple[list[tuple[int, float, int, int]], int]]]) -> None:
    """A later round, shorter or longer, shows nothing of an earlier one."""
    panel = Panel()
    for each in rounds:
        panel.clear()
        assert panel.candidates() == []
        made = {source: candidate(*values) for source, values in each.items()}
        for source, one in made.items():
            put(panel, source, one)
        found = panel.candidates()
        assert [name for name, _ in found] == [SOURCE_NAMES[source] for source in sorted(made)]
        for (_, got), source in zip(found, sorted(made), strict=True):
            want = made[source]
            assert got.match_length == want.match_length
            for key in ("tokens", "probs", "counts", "hits"):
                np.testing.assert_array_equal(getattr(got, key), getattr(want, key))
                assert getattr(got, key).dtype == getattr(want, key).dtype


def test_candidates_are_copies() -> None:
    panel = Panel()
    put(panel, 1, candidate([(7, 0.5, 2, 1)], 3))
    ((name, kept),) = panel.candidates()
    put(panel, 1, candidate([(8, 0.25, 4, 3)], 5))
    assert (name, kept.tokens.tolist(), kept.probs.tolist(), kept.match_length) == ("workspace", [7], [0.5], 3)
