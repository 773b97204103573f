"""A step's rows in one compiled call each way: what they would draft, and what came of it.

Each row is told by its request's desk, stores by address: however many rows, stores and segments there are, no other
thread waits.
"""

from __future__ import annotations

from agspec.draft import align
from agspec.draft.addresses import PARTS, addresses, longs
from agspec.draft.budget import best
from agspec.draft.desk import (
    ASKED,
    ASKS,
    CAP,
    CHOICE,
    DESK,
    EXPECTED,
    FACTOR,
    FARED,
    FIXED,
    FLOOR,
    FORESEEN,
    LIMIT,
    MULTIPLIER,
    NUM_ASKED,
    OFFSET,
    RATE,
    REGION,
    ROLE,
    SHARE,
    SIZE,
    TEXT,
    board_of,
    context_of,
    odds_of,
    terms_of,
    text_of,
)
from agspec.draft.kernels import jit
from agspec.draft.looking import fill
from agspec.draft.odds import judge, learn
from agspec.draft.panel import NUM_SOURCES
from agspec.draft.regions import walk_all, walk_on

RAW_FLOOR = 0.02
"""Product of a store's own chances at which its candidate ends; the odds cut it shorter."""
SOURCE, PARTS_AT = 0, 1


@jit
def look_up(desk, tables):
    """Ask every source that ``desk`` tells of, int64 [n, 2] (SOURCE, PARTS_AT), and the texts followed."""
    b, context, limit = board_of(desk), context_of(desk), int(terms_of(desk)[LIMIT])
    b.moment[0] = context[-1]
    b.moment[1] = context[-2] if context.size > 1 else -1
    b.moment[2] = desk[FARED]
    b.moment[3] = desk[ROLE]
    asked = addresses(desk[ASKED], desk[NUM_ASKED], 2)
    for i in range(asked.shape[0]):
        s = asked[i, SOURCE]
        b.sizes[s], b.lengths[s] = fill(
            addresses(asked[i, PARTS_AT], PARTS, 7), context, RAW_FLOOR, limit,
            b.tokens[s], b.probs[s], b.counts[s], b.hits[s],
        )  # fmt: skip
    s = NUM_SOURCES - 1
    n, length = align.fill(text_of(desk, EXPECTED), limit, b.tokens[s], b.probs[s], b.counts[s], b.hits[s])
    desk[FORESEEN] = n > 0
    if n == 0:
        n, length = align.fill(text_of(desk, TEXT), limit, b.tokens[s], b.probs[s], b.counts[s], b.hits[s])
    b.sizes[s], b.lengths[s] = n, length
    walk_all(b.tokens, b.sizes, tables, longs(desk[REGION], 2), b.regions)


@jit
def _legal(tokens, n, allowed):
    """How many of the first ``n`` of ``tokens`` come before one that is not ``allowed`` (bool [vocabulary])."""
    for k in range(n):
        if not 0 <= tokens[k] < allowed.size or not allowed[tokens[k]]:
            return k
    return n


@jit
def offer(desks, tables, allowed):
    """For each of ``desks`` (addresses) its CHOICE: source of the candidate that is worth most, and how much to draft.

    SIZE 0: nothing is worth drafting. The board has the merits.
    """
    for at in desks:
        desk = longs(at, DESK)
        look_up(desk, tables)
        board, terms = board_of(desk), terms_of(desk)
        judge(odds_of(desk)[0], board, min(terms[FLOOR], RAW_FLOOR))
        choice, n = best(
            board.chances, board.kept, terms[SHARE], terms[RATE], terms[FIXED] != 0, terms[FLOOR], board.merits
        )
        if choice >= 0:
            longest = min(terms[CAP], int(terms[FACTOR] * board.lengths[choice]) + terms[OFFSET])
            longest = min(int(terms[LIMIT]), int(max(0, longest) * terms[MULTIPLIER]))
            n = _legal(board.tokens[choice], min(n, longest), allowed)
        desk[CHOICE], desk[SIZE] = choice, n


@jit
def count(desks, looked):
    """Add up in ``looked`` int64 [2, NUM_SOURCES] how often each source was asked, and knew something."""
    for at in desks:
        desk = longs(at, DESK)
        sizes = board_of(desk).sizes
        for source in range(NUM_SOURCES):
            looked[0, source] += desk[ASKS] >> source & 1
            looked[1, source] += sizes[source] > 0


@jit
def observe(desk, new, tables):
    """Move on past the ``new`` tokens, learn what they say of the candidates and how these fared."""
    align.extend(text_of(desk, EXPECTED), new)
    align.extend(text_of(desk, TEXT), new)
    walk_on(new, tables, longs(desk[REGION], 2))
    board = board_of(desk)
    weights, squares = odds_of(desk)
    right = learn(weights, squares, board, new)
    board.sizes[:] = 0
    run = 0 if right < new.size else min(desk[FARED] // 3 + 1, 3)
    desk[FARED] = 3 * run + min(right, 2)
