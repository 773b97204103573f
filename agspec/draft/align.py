"""Follows a copy through edits: where in a request's own text the output has got to, also after a changed token.

A pointer into prompt and output so far. While the output repeats what stands at the pointer, it moves on. Where it
does not, the pointer moves to the nearest place that ends as the output does (the text was edited and goes on), stays
for a while (something was inserted), or is given up. The latest earlier place of the last GRAM tokens sets it anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agspec.draft.kernels import jit
from agspec.tokens import Tokens

GRAM = 6
"""Tokens that must repeat for a copy to be taken up."""
NEAR = 64
"""Tokens before and after the pointer that are searched after a changed token."""
LOST = 24
"""Changed tokens after which a copy that never ran on for STEADY tokens is given up."""
STEADY = 4
LONGEST = 8
"""Tokens compared at most to rank two places."""
PER_STEP = 4096
"""Tokens indexed in one step: a long prompt is taken in over a few."""
CHANCE = 0.5
"""Of each token, before the odds judge it."""

POINTER, RUN, CHANGED, SIZE, DONE = 0, 1, 2, 3, 4


class Text(NamedTuple):
    """A request's text and the pointer into it, for compiled code.

    ``tokens`` int32 [SIZE or more]; ``places`` int32 [power of two]: hash of GRAM tokens -> place after them; ``state``
    int64 [5]: POINTER, tokens that RUN from there, CHANGED tokens of late, SIZE of the text, and how much is DONE.
    """

    tokens: npt.NDArray[np.int32]
    places: npt.NDArray[np.int32]
    state: npt.NDArray[np.int64]


@jit
def _slot(tokens, end, mask):
    mixed = 0
    for j in range(GRAM):
        mixed = (mixed * 0x2C1B3C6D + tokens[end - j]) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 0x9E3779B1) & 0xFFFFFFFF
    return (mixed >> 7) & mask


@jit
def _nearest(tokens, i, pointer):
    """(place after the nearest best match of the text that ends at ``i``, its length); length 0: none."""
    length, place, far = 0, 0, 0
    for q in range(max(0, pointer - NEAR), min(pointer + NEAR, i)):
        if tokens[q] != tokens[i]:
            continue
        n = 1
        while n < LONGEST and q >= n and tokens[q - n] == tokens[i - n]:
            n += 1
        distance = 2 * abs(q - pointer) + (1 if q < pointer else 0)
        if n > length or (n == length and distance < far):
            length, place, far = n, q + 1, distance
    return place, length


@jit
def _follow(text, end):
    """Take in the tokens up to ``end``."""
    tokens, places, state = text
    for i in range(state[DONE], end):
        before = 0
        if i >= GRAM:
            slot = _slot(tokens, i, places.size - 1)
            before = places[slot]
            places[slot] = i + 1
            for j in range(GRAM):
                if before and tokens[before - 1 - j] != tokens[i - j]:
                    before = 0
        pointer = state[POINTER]
        if 0 < pointer < i and tokens[pointer] == tokens[i]:
            state[POINTER] += 1
            state[RUN] += 1
            if state[RUN] >= STEADY:
                state[CHANGED] = 0
        elif before:
            state[POINTER], state[RUN], state[CHANGED] = before, GRAM, 0
        elif pointer:
            place, length = _nearest(tokens, i, pointer)
            if length:
                state[POINTER] = place
            state[RUN] = length
            state[CHANGED] += 1
            if state[CHANGED] > LOST:
                state[: CHANGED + 1] = 0
    state[DONE] = end


@jit
def extend(text, new):
    """Append ``new`` tokens of the output, for which there is room; an absent text stays so."""
    size = text.state[SIZE]
    if size < 0:
        return
    text.tokens[size : size + new.size] = new
    text.state[SIZE] = size + new.size
    _follow(text, min(size + new.size, text.state[DONE] + PER_STEP))


@jit
def fill(text, limit, tokens, probs, counts, hits):
    """Write what stands at the pointer, up to ``limit`` tokens; (tokens written, tokens followed so far)."""
    pointer, size = text.state[POINTER], text.state[SIZE]
    if not 0 < pointer < size or text.state[DONE] < size:
        return 0, 0
    n = min(limit, size - pointer)
    tokens[:n] = text.tokens[pointer : pointer + n]
    probs[:n] = CHANCE
    counts[:n] = 1 + text.state[CHANGED]
    hits[:n] = 0
    return n, text.state[RUN]


class Aligner:
    """The text of one request and the pointer into it."""

    def __init__(self, prompt: Tokens) -> None:
        tokens = np.empty(prompt.size + 1024, np.int32)
        tokens[: prompt.size] = prompt
        places = np.zeros(1 << max(12, int(2 * prompt.size).bit_length()), np.int32)
        self.text = Text(tokens, places, np.array([0, 0, 0, prompt.size, 0]))

    @classmethod
    def expecting(cls, output: Tokens) -> Aligner:
        """An aligner over what the client expects the output to be: followed from its first token on."""
        aligner = cls(np.concatenate((np.array([-1], np.int32), output)))
        _follow(aligner.text, output.size + 1)
        aligner.text.state[: CHANGED + 1] = (1, LONGEST, 0)
        return aligner

    def reserve(self, number: int) -> bool:
        """Make room for ``number`` more tokens; whether the text had to move."""
        need = int(self.text.state[SIZE]) + number
        if need > self.text.tokens.size:
            self.text = self.text._replace(tokens=np.concatenate((self.text.tokens, np.empty(need, np.int32))))
            return True
        return False

    def extend(self, tokens: Tokens) -> None:
        """Append the output's new tokens."""
        self.reserve(int(tokens.size))
        extend(self.text, tokens)


ABSENT = Text(np.empty(1, np.int32), np.zeros(1, np.int32), np.array([0, 0, 0, -1, 0]))
"""No text, of SIZE -1: nothing to follow."""
