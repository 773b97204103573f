"""What every lookup engine promises, asked of both: our automaton in segments, and SuffixDecoding's tree."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from agspec.draft.lookup import Candidate, Lookup, LookupFactory, SamLookup
from agspec.tokens import EMPTY, Tokens, as_tokens
from tests.support import needs_arctic

ROOT = Path(__file__).resolve().parents[1]
BUDGET = 64 << 20
SMALL = 8 << 20
SLACK = {"sam": 0, "suffix-tree": 24 << 20}
"""Bytes over the budget: the tree is measured every 65,536 tokens only."""
ENGINES = [pytest.param("sam", id="sam"), pytest.param("suffix-tree", id="suffix-tree", marks=needs_arctic)]


def make_tree(budget: int) -> Lookup:
    from agspec.draft.suffix_tree import SuffixTreeLookup

    return SuffixTreeLookup(budget)


FACTORIES: dict[str, LookupFactory] = {"sam": SamLookup, "suffix-tree": make_tree}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(engine: str) -> Callable[[int], Lookup]:
    return FACTORIES[engine]


def fill(lookup: Lookup, *texts: Tokens) -> None:
    for text in texts:
        lookup.extend(lookup.open(), text)


def ask(lookup: Lookup, context: Tokens, *, limit: int = 16, floor: float = 0.05) -> list[int]:
    found = lookup.draft(context, limit=limit, floor=floor)
    return [] if found is None else found.tokens.tolist()


def legal(found: Candidate, limit: int) -> None:
    assert 1 <= len(found.tokens) == len(found.probs) == len(found.counts) <= limit
    assert found.tokens.dtype == np.int32
    assert ((found.probs > 0) & (found.probs <= 1)).all()
    assert (found.counts >= 0).all()
    assert 1 <= found.match_length <= 64


def unique_text(rng: np.random.Generator, n: int) -> Tokens:
    return rng.integers(0, 2**31 - 1, n).astype(np.int32)


def test_nothing_known(make: LookupFactory) -> None:
    lookup = make(BUDGET)
    assert lookup.draft(as_tokens([1, 2, 3]), limit=8, floor=0.1) is None
    fill(lookup, as_tokens([4, 5, 6]), EMPTY)
    assert lookup.draft(as_tokens([1, 2, 3]), limit=8, floor=0.1) is None
    assert lookup.draft(as_tokens([4, 5, 6]), limit=8, floor=0.1) is None, "nothing followed"


def test_obvious_continuation(make: LookupFactory) -> None:
    lookup = make(BUDGET)
    fill(lookup, np.arange(100, 140, dtype=np.int32))
    found = lookup.draft(np.arange(110, 120, dtype=np.int32), limit=12, floor=0.01)
    assert found is not None
    legal(found, 12)
    assert found.tokens.tolist() == list(range(120, 132))
    assert found.match_length >= 9, "the tree spares the context's first token"
    assert ask(lookup, as_tokens([1, 2, 138])) == [139], "a shorter suffix, up to the document's end"


def test_the_usual_continuation_wins(make: LookupFactory) -> None:
    lookup = make(BUDGET)
    fill(lookup, as_tokens([1, 2, 3, 8, 8]), *[as_tokens([1, 2, 3, 9, 9])] * 5)
    assert ask(lookup, as_tokens([1, 2, 3]), limit=2) == [9, 9]


def test_the_floor_ends_a_draft(make: LookupFactory) -> None:
    lookup = make(BUDGET)
    fill(lookup, *[as_tokens([1, 2, 3, 4, 5, 60 + i, 7, 7, 7]) for i in range(8)])
    context = as_tokens([1, 2, 3])
    sure, unsure = ask(lookup, context, floor=0.5), ask(lookup, context, floor=0.02)
    assert sure == [4, 5]
    assert len(unsure) > 2
    assert unsure[:2] == sure


def test_documents_do_not_match_across_their_borders(make: LookupFactory) -> None:
    lookup = make(BUDGET)
    fill(lookup, as_tokens([1, 2, 3]), as_tokens([4, 5, 6]), as_tokens([3, 9]))
    found = lookup.draft(as_tokens([2, 3]), limit=8, floor=0.0)
    assert found is not None, "the shorter suffix is known"
    assert (found.match_length, found.tokens.tolist()) == (1, [9])
    assert ask(lookup, as_tokens([3, 4])) == [5, 6]


def test_a_document_grows_and_goes_on_after_its_tail(make: LookupFactory) -> None:
    lookup = make(BUDGET)
    document = lookup.open(as_tokens([1, 2, 3]))
    for token in (4, 5, 6):
        lookup.extend(document, as_tokens([token]))
    assert ask(lookup, as_tokens([2, 3])) == [4, 5, 6]
    lookup.close(document)
    assert ask(lookup, as_tokens([2, 3, 4])) == [5, 6]


def test_chances_where_more_followed_than_was_counted(make: LookupFactory) -> None:
    """Documents of a request that is sent again and again go on after the same tail, which is counted once at most."""
    lookup = make(BUDGET)
    tail = as_tokens([1, 2, 3])
    for uncounted in (True, False):
        if not uncounted:
            fill(lookup, tail)
        for _ in range(5):
            lookup.extend(lookup.open(tail), as_tokens([4, 5]))
        lookup.extend(lookup.open(tail), as_tokens([6, 5]))
        found = lookup.draft(tail, limit=4, floor=0.02)
        assert found is not None
        legal(found, 4)
        assert found.tokens.tolist() == [4, 5]
        assert found.probs[0] < 0.95


def test_random_contexts_give_legal_candidates(make: LookupFactory) -> None:
    rng = np.random.default_rng(3)
    lookup = make(BUDGET)
    texts = [rng.integers(0, vocabulary, 3000).astype(np.int32) for vocabulary in (2, 7, 300)]
    fill(lookup, *texts)
    found = 0
    for _ in range(600):
        text = texts[int(rng.integers(3))]
        end = int(rng.integers(1, text.size))
        limit = int(rng.integers(1, 50))
        context = text[max(0, end - int(rng.integers(1, 90))) : end].copy()
        candidate = lookup.draft(context, limit=limit, floor=float(rng.choice([0.0, 0.02, 0.5])))
        if candidate is not None:
            legal(candidate, limit)
            found += 1
    assert found > 400


# --- eviction ----------------------------------------------------------------------------------------------------


def test_eviction_keeps_to_the_budget_and_drops_the_oldest(make: LookupFactory, engine: str) -> None:
    rng = np.random.default_rng(7)
    lookup = make(SMALL)
    texts = [unique_text(rng, 2000) for _ in range(160)]
    highest = 0
    for text in texts:
        fill(lookup, text)
        highest = max(highest, lookup.memory_bytes)
    assert highest <= SMALL + SLACK[engine]
    assert lookup.num_evicted_tokens > 0
    assert lookup.num_tokens + lookup.num_evicted_tokens == 160 * 2000
    known = [ask(lookup, text[1000:1020].copy(), limit=5) == text[1020:1025].tolist() for text in texts]
    assert known == sorted(known), "what is forgotten is older than all that is kept"
    assert known[-1]
    assert not known[0]
    assert sum(known) >= lookup.num_tokens // 2000 - 2
    if isinstance(lookup, SamLookup):
        lookup.check()


def test_documents_go_on_after_their_beginning_was_evicted(make: LookupFactory) -> None:
    rng = np.random.default_rng(8)
    lookup = make(SMALL)
    start, later = unique_text(rng, 400), unique_text(rng, 200)
    fill(lookup, start)
    old = lookup.open()
    lookup.extend(old, start[:300])
    for _ in range(160):
        fill(lookup, unique_text(rng, 2000))
    assert ask(lookup, start[100:120].copy()) == []
    lookup.extend(old, start[300:])
    lookup.extend(old, later[:100])
    lookup.extend(old, later[100:])
    assert ask(lookup, later[80:95].copy()) == later[95:111].tolist()
    assert ask(lookup, start[330:350].copy()) == start[350:366].tolist(), "text like an evicted one is new again"
    held = lookup.num_tokens
    lookup.extend(old, later[:100])
    assert lookup.num_tokens == held + 100


def test_one_document_longer_than_a_segment() -> None:
    rng = np.random.default_rng(9)
    text = unique_text(rng, 150_000)
    lookup = SamLookup(BUDGET)
    document = lookup.open()
    sizes = []
    for start in range(0, text.size, 700):
        lookup.extend(document, text[start : start + 700].copy())
        sizes.append(lookup.memory_bytes)
    borders = [i for i in range(1, len(sizes)) if sizes[i] != sizes[i - 1]]
    assert borders
    assert lookup.num_tokens == text.size
    for border in borders:
        short = 0
        for end in range(border * 700 - 20, border * 700 + 720):
            found = lookup.draft(text[end - 30 : end].copy(), limit=8, floor=0.02)
            assert found is not None
            assert found.match_length == 30
            assert found.tokens.tolist() == text[end : end + found.tokens.size].tolist()
            short += found.tokens.size < 8
        assert short == 7, "one segment knows what comes before the border, the other what comes after"


def test_a_newest_segment_without_room_for_the_tail() -> None:
    """Two documents move to a new segment; that one is full at once: the text still goes on after its tail."""
    rng = np.random.default_rng(10)
    lookup = SamLookup(SMALL)
    documents = [lookup.open() for _ in range(6)]
    texts: list[list[Tokens]] = [[] for _ in documents]
    for i in range(3000):
        which = int(rng.integers(6)) if i % 200 < 20 else 0
        part = unique_text(rng, 30)
        lookup.extend(documents[which], part)
        texts[which].append(part)
    for which, parts in enumerate(texts):
        text = np.concatenate(parts)
        for end in range(text.size - 300, text.size - 8, 7):
            found = lookup.draft(text[end - 40 : end].copy(), limit=4, floor=0.02)
            assert found is not None
            assert (found.match_length, found.tokens.tolist()) == (40, text[end : end + 4].tolist()), which


# --- the same in every process -----------------------------------------------------------------------------------

SCRIPT = """
import sys
import numpy as np
import test_lookup
rng = np.random.default_rng(1)
lookup = test_lookup.FACTORIES[sys.argv[1]](6 << 20)
documents = [lookup.open() for _ in range(4)]
text = rng.integers(0, 300, 120_000).astype(np.int32)
out = []
for start in range(0, text.size, 400):
    which = start // 400 % 4
    lookup.extend(documents[which], text[start : start + 400])
    for end in range(start + 40, start + 400, 120):
        found = lookup.draft(text[end - 30 : end], limit=24, floor=0.01)
        if found is not None:
            out += [found.tokens.tobytes(), found.probs.tobytes(), found.counts.tobytes()]
sys.stdout.buffer.write(b"".join(out))
"""


def test_two_processes_draft_the_same_bytes(engine: str) -> None:
    def run(seed: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
        done = subprocess.run([sys.executable, "-c", SCRIPT, engine], env=environment, capture_output=True, check=True)
        return done.stdout

    first = run("1")
    assert len(first) > 10_000
    assert first == run("4242")
