"""What compiled code is to know of a request, as one row of numbers: addresses, sizes, and its answer.

A call for a row, or for all rows of a step, then hands over rows of numbers and not dozens of arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agspec.draft.addresses import Addresses, address, byte_rows, longs, numbers, real_rows, reals, rows, singles
from agspec.draft.align import Text
from agspec.draft.caps import MAX_DRAFT
from agspec.draft.kernels import MAX_CONTEXT, jit
from agspec.draft.odds import NUM_WEIGHTS, Odds
from agspec.draft.panel import NUM_SOURCES, Board, Panel
from agspec.tokens import Tokens

ASKED, NUM_ASKED, CONTEXT, NUM_CONTEXT, TERMS, REGION, FARED, ROLE, WEIGHTS, SQUARES, CHOICE, SIZE, ASKS = range(13)
FORESEEN, TEXT, EXPECTED, BOARD, DESK = 13, 14, 19, 24, 35
"""ASKS: sources, as bits. FORESEEN: whether the aligned candidate is of the EXPECTED text. Where the numbers of the two
texts and of the board begin, and how many there are in all."""
LIMIT, FLOOR, SHARE, RATE, FIXED, FACTOR, OFFSET, CAP, MULTIPLIER = range(9)
"""Of ``terms``: most tokens of a candidate; what a draft must promise, see ``budget``; how long it may be: by FACTOR,
OFFSET and CAP of the role's limits, times MULTIPLIER."""


@jit
def board_of(desk):
    """The panel's arrays."""
    s, n = NUM_SOURCES, MAX_DRAFT
    at = desk[BOARD:]
    return Board(
        rows(at[0], s, n), real_rows(at[1], s, n), rows(at[2], s, n), rows(at[3], s, n), byte_rows(at[4], s, n),
        longs(at[5], s), longs(at[6], s), longs(at[7], 4), real_rows(at[8], s, n), longs(at[9], s), reals(at[10], n),
    )  # fmt: skip


@jit
def text_of(desk, which):
    """The text that starts at ``which``: TEXT or EXPECTED; where there is none, one of no size at all."""
    at = desk[which:]
    return Text(numbers(at[0], at[1]), numbers(at[2], at[3]), longs(at[4], 5))


@jit
def context_of(desk):
    """The context's last tokens."""
    return numbers(desk[CONTEXT], desk[NUM_CONTEXT])


@jit
def terms_of(desk):
    """The terms of the row's draft."""
    return reals(desk[TERMS], 9)


@jit
def odds_of(desk):
    """(weights, squares) of the tenant's odds."""
    return singles(desk[WEIGHTS], NUM_WEIGHTS), singles(desk[SQUARES], NUM_WEIGHTS)


class Desk:
    """One request's row of ``numbers`` int64 [DESK], and the arrays it tells of, which stay as long as it does."""

    def __init__(self, panel: Panel, odds: Odds, role: int) -> None:
        self.numbers = np.zeros(DESK, np.int64)
        self._context = np.zeros(MAX_CONTEXT, np.int32)
        self._terms = np.zeros(9)
        region = np.zeros(2, np.int64)
        self._kept: dict[int, Any] = {REGION: region, WEIGHTS: odds.weights, SQUARES: odds.squares, BOARD: panel}
        for place, array in ((CONTEXT, self._context), (TERMS, self._terms), *self._kept.items()):
            if place != BOARD:
                self.numbers[place] = address(array)
        self.numbers[BOARD:] = [address(array) for array in panel.board]
        self.numbers[ROLE] = role
        self.address = address(self.numbers)

    def follow(self, which: int, text: Text) -> None:
        """Tell of a text that is followed, ABSENT or again whenever it has moved."""
        self._kept[which] = text
        tokens, places, state = text
        at = (address(tokens), tokens.size, address(places), places.size, address(state))
        self.numbers[which : which + 5] = at

    def tell(self, asked: Addresses) -> None:
        """The stores to look up in, see ``offering.look_up``."""
        self._kept[ASKED] = asked
        self.numbers[ASKED], self.numbers[NUM_ASKED] = address(asked), len(asked)

    def ask(self, context: Tokens, terms: tuple[float, ...]) -> None:
        """After what to look up, and on which terms."""
        n = min(context.size, MAX_CONTEXT)
        self._context[:n] = context[-n:]
        self._terms[:] = terms
        self.numbers[NUM_CONTEXT] = n

    @property
    def answer(self) -> tuple[int, int]:
        """The CHOICE and its SIZE."""
        return int(self.numbers[CHOICE]), int(self.numbers[SIZE])
