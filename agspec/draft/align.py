"""Follows a copy through edits: where in a request's own text the output has got to, also after a changed token.

A pointer into prompt and output so far. While the output repeats what stands at the pointer, it moves on. Where it
does not, the pointer moves to the nearest place that ends as the output does (the text was edited and goes on), stays
for a while (something was inserted), or is given up. The latest earlier place of the last GRAM tokens sets it anew.
"""

from __future__ import annotations

import numpy as np

from agspec.draft.kernels import jit
from agspec.draft.lookup import Found, Slot
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

POINTER, RUN, CHANGED = 0, 1, 2


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
def follow(tokens, start, end, places, state):
    """Take in ``tokens[start:end]``; ``places`` int32 [power of two]: hash of GRAM tokens -> place after them."""
    for i in range(start, end):
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
                state[:] = 0


class Aligner:
    """The text of one request and the pointer into it."""

    def __init__(self, prompt: Tokens) -> None:
        self._tokens = np.empty(prompt.size + 1024, np.int32)
        self._tokens[: prompt.size] = prompt
        self._size = int(prompt.size)
        self._done = 0
        self._places = np.zeros(1 << max(12, int(2 * prompt.size).bit_length()), np.int32)
        self._state = np.zeros(3, np.int64)

    @classmethod
    def expecting(cls, output: Tokens) -> Aligner:
        """An aligner over what the client expects the output to be: followed from its first token on."""
        aligner = cls(np.concatenate((np.array([-1], np.int32), output)))
        follow(aligner._tokens, 0, aligner._size, aligner._places, aligner._state)
        aligner._done = aligner._size
        aligner._state[:] = (1, LONGEST, 0)
        return aligner

    def extend(self, tokens: Tokens) -> None:
        """Append the output's new tokens."""
        need = self._size + int(tokens.size)
        if need > self._tokens.size:
            self._tokens = np.concatenate((self._tokens, np.empty(need, np.int32)))
        self._tokens[self._size : need] = tokens
        self._size = need
        end = min(need, self._done + PER_STEP)
        follow(self._tokens, self._done, end, self._places, self._state)
        self._done = end

    def fill(self, slot: Slot, limit: int) -> Found:
        """Write what stands at the pointer, up to ``limit`` tokens; ``match_length``: tokens followed so far."""
        pointer, run, changed = self._state.tolist()
        if not 0 < pointer < self._size or self._done < self._size:
            return 0, 0
        n = min(limit, self._size - pointer)
        slot.tokens[:n] = self._tokens[pointer : pointer + n]
        slot.probs[:n] = CHANCE
        slot.counts[:n] = 1 + changed
        slot.hits[:n] = 0
        return n, run
