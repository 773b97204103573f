"""The automaton against numpy brute force: piece borders, large random text, and what happens when it is full."""

from __future__ import annotations

import re
import sysconfig
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agspec.draft.automaton import Automaton, Document
from agspec.draft.kernels import MAX_CONTEXT, PIECE
from agspec.tokens import Tokens, as_tokens


class Brute:
    """Documents laid end to end with a separator, and when each token arrived."""

    def __init__(self) -> None:
        self.documents: list[list[Tokens]] = []
        self.arrivals: list[list[Tokens]] = []
        self.size = 0

    def open(self) -> int:
        self.documents.append([as_tokens([-1])])
        self.arrivals.append([as_tokens([-1])])
        return len(self.documents) - 1

    def extend(self, document: int, tokens: Tokens) -> None:
        self.documents[document].append(tokens)
        self.arrivals[document].append(np.arange(self.size, self.size + tokens.size, dtype=np.int32))
        self.size += int(tokens.size)

    def freeze(self) -> None:
        self.text = np.concatenate([part for parts in self.documents for part in parts])
        self.arrival = np.concatenate([part for parts in self.arrivals for part in parts])

    def ends(self, context: Tokens) -> Tokens:
        """Places of ``text`` at which ``context`` ends."""
        places = np.flatnonzero(self.text == context[-1])
        for back in range(1, context.size):
            places = places[self.text[places - back] == context[-1 - back]]
        return places.astype(np.int32)

    def match(self, context: Tokens) -> int:
        places, n = np.flatnonzero(self.text == context[-1]), 0
        while places.size and n < context.size:
            n += 1
            if n < context.size:
                places = places[self.text[places - n] == context[-1 - n]]
        return n

    def followers(self, context: Tokens) -> dict[int, tuple[int, int]]:
        after = self.ends(context) + 1
        after = after[after < self.text.size]
        found: dict[int, tuple[int, int]] = {}
        for token, arrived in zip(self.text[after].tolist(), self.arrival[after].tolist(), strict=True):
            if token >= 0:
                count, recent = found.get(token, (0, -1))
                found[token] = (count + 1, max(recent, arrived))
        return found


def rows(automaton: Automaton, context: Any) -> dict[int, tuple[int, int]]:
    return {row.token: (row.count, row.recent) for row in automaton.continuations(context)}


def same(automaton: Automaton, brute: Brute, context: Tokens) -> None:
    assert automaton.match(context).length == brute.match(context)
    assert automaton.count(context) == brute.ends(context).size
    assert rows(automaton, context) == brute.followers(context)


def text_like(n: int) -> Tokens:
    """``n`` token ids with the statistics of source text: the standard library's words, hashed."""
    ids: list[int] = []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        words = re.findall(r"\w+|\s+|[^\w\s]", path.read_text("utf-8", "replace"))
        ids += [zlib.crc32(word.encode()) % 50_000 for word in words]
        if len(ids) >= n:
            break
    assert len(ids) >= n
    return as_tokens(ids[:n])


# --- piece borders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [PIECE * 4, 1000, 1], ids=["at once", "1000", "one by one"])
def test_counts_across_piece_borders(chunk: int) -> None:
    rng = np.random.default_rng(11)
    motifs = [rng.integers(0, 40, size).astype(np.int32) for size in (150, 90, 33)]
    text = np.concatenate([motifs[i] for i in rng.integers(0, 3, 160)])
    text = np.where(rng.random(text.size) < 0.004, rng.integers(0, 40, text.size), text).astype(np.int32)
    assert text.size > 3 * PIECE
    automaton, brute = Automaton(capacity=4 * PIECE), Brute()
    document, twin = automaton.open(), brute.open()
    for start in range(0, text.size, chunk):
        part = text[start : start + chunk]
        assert automaton.extend(document, part) == part.size
    brute.extend(twin, text)
    brute.freeze()
    automaton.check()
    assert len(automaton) == text.size
    for border in (PIECE, 2 * PIECE, 3 * PIECE):
        for end in [border + shift for shift in (-65, -64, -63, -2, -1, 0, 1, 2, 31, 63, 64, 65, 66)]:
            for length in (1, 2, 17, MAX_CONTEXT - 1, MAX_CONTEXT):
                same(automaton, brute, text[end - length : end])


# --- large random text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vocabulary", [50, 50_000])
def test_a_hundred_thousand_extends(vocabulary: int) -> None:
    rng = np.random.default_rng(vocabulary)
    automaton, brute = Automaton(capacity=400_000), Brute()
    documents = [(automaton.open(), brute.open()) for _ in range(5)]
    recent = rng.integers(0, vocabulary, 200).astype(np.int32)
    for _ in range(100_000):
        size = int(rng.integers(0, 4))
        document, twin = documents[int(rng.integers(5))]
        if rng.random() < 0.3:
            start = int(rng.integers(0, 197))
            tokens = recent[start : start + size].copy()
        else:
            tokens = rng.integers(0, vocabulary, size).astype(np.int32)
            recent[: 200 - size], recent[200 - size :] = recent[size:].copy(), tokens
        assert automaton.extend(document, tokens) == size
        brute.extend(twin, tokens)
    brute.freeze()
    automaton.check()
    assert len(automaton) == brute.size > 140_000
    for _ in range(300):
        end, length = int(rng.integers(70, brute.text.size)), int(rng.integers(1, MAX_CONTEXT + 1))
        context = brute.text[end - min(length, int(rng.integers(1, 9))) if rng.random() < 0.7 else end - length : end]
        if rng.random() < 0.3:
            context = np.concatenate((context, rng.integers(0, vocabulary, 1).astype(np.int32)))[-MAX_CONTEXT:]
        if (context >= 0).all():
            same(automaton, brute, context)


def test_A4_memory_of_text_like_tokens() -> None:
    text = text_like(200_000)
    automaton = Automaton(capacity=text.size)
    document = automaton.open()
    assert automaton.extend(document, text) == text.size
    assert automaton.memory_bytes <= 120 * text.size
    assert automaton.reserved_bytes <= 120 * text.size
    automaton.check()


# --- full --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_a_full_automaton_refuses_and_stays_sound(seed: int) -> None:
    """What went in is exactly what is found, also when the refusal falls on a piece border."""
    rng = np.random.default_rng(seed)
    automaton, brute = Automaton(capacity=[300, 900, 2000, 2600, 2700, 4000][seed]), Brute()
    documents = [(automaton.open(), brute.open()) for _ in range(3)]
    refused = 0
    for _ in range(12_000):
        document, twin = documents[int(rng.integers(3))]
        tokens = rng.integers(0, 6, int(rng.integers(1, 9))).astype(np.int32)
        went = automaton.extend(document, tokens)
        assert 0 <= went <= tokens.size
        refused += went < tokens.size
        brute.extend(twin, tokens[:went])
    brute.freeze()
    automaton.check()
    assert refused > 100
    assert len(automaton) == brute.size
    for _ in range(150):
        end, length = int(rng.integers(70, brute.text.size)), int(rng.integers(1, 20))
        if (brute.text[end - length : end] >= 0).all():
            same(automaton, brute, brute.text[end - length : end])


def test_refusal_at_a_piece_border_leaves_the_document_where_it_was() -> None:
    """The overlap of a new piece may not fit: then the next tokens must not land after a part of it."""
    automaton, brute = Automaton(capacity=PIECE), Brute()
    rng = np.random.default_rng(0)
    first, filler = (automaton.open(), brute.open()), (automaton.open(), brute.open())

    def extend(which: tuple[Document, int], tokens: Tokens) -> int:
        went = automaton.extend(which[0], tokens)
        brute.extend(which[1], tokens[:went])
        return went

    period = np.tile(np.arange(97, dtype=np.int32), PIECE)[:PIECE]
    start_of_overlap = np.append(period[-MAX_CONTEXT:][:6], np.int32(5000))
    assert extend((automaton.open(), brute.open()), start_of_overlap) == 7
    assert extend(first, period) == PIECE
    while extend(filler, rng.integers(1000, 9000, 1).astype(np.int32)):
        pass
    while extend((automaton.open(), brute.open()), as_tokens([int(rng.integers(97))])):
        pass
    for token in (5000, 5000, *range(97)):
        extend(first, as_tokens([token]))
    brute.freeze()
    automaton.check()
    for token in (5000, 5000, *range(97)):
        same(automaton, brute, as_tokens([token]))
