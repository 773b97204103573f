"""Compiled functions over the flat arrays of a suffix automaton; no classes.

The automaton is the smallest deterministic one that accepts every substring of every document (Blumer et
al. 1985; online construction over several documents: Mohri, Moreno and Weinstein 2009). States hold strings
that end at the same places; a state's suffix link leads to the longest of its suffixes that ends at more
places. A state is a row of one array; a transition is a row of an open-addressing hash table (one cache line a
look-up) and, by ``AFTER``, of its state's list. Nothing is ever removed or moved.

Counts are kept for contexts of up to ``MAX_CONTEXT`` tokens and what followed them: each new token walks the suffix
links from the state of the last ``COUNTED`` tokens up to the root, which is at most that many states whatever the text.
"""

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int32]

MAX_CONTEXT = 64
"""Contexts are matched and counted exactly up to this many tokens."""
COUNTED = MAX_CONTEXT + 1
"""A context of MAX_CONTEXT tokens and the token that followed it: counts are exact up to this many."""
PIECE = 4096
"""A document is cut into pieces of this many tokens, which overlap by MAX_CONTEXT: bounds the work of one token."""
ROOT = 0
NONE = -1

LENGTH, LINK, HEAD, COUNT, RECENT = 0, 1, 2, 3, 4
SOURCE, TOKEN, TARGET, AFTER = 0, 1, 2, 3
NUM_STATES, NUM_EDGES, NUM_TOKENS = 0, 1, 2
LAST, TRUNK, TRUNK_LENGTH, IN_PIECE, POSITION, IN_TAIL = 0, 1, 2, 3, 4, 5

MAX_LOAD = 0.8
"""Share of the slots of ``edges`` that may be filled."""

jit = numba.njit(cache=True, nogil=True)


class Arrays(NamedTuple):
    """The automaton's memory, all int32.

    ``states`` [n, 5]: LENGTH of the longest string, suffix LINK, HEAD of the list of transitions, COUNT of
    occurrences, RECENT: position at which the latest occurrence ends. ``edges`` [slots, 4]: SOURCE state + 1 (0: empty
    slot), TOKEN, TARGET state, slot of the transition AFTER it in its state's list. ``used`` [3]: states, transitions,
    tokens.
    """

    states: Array
    edges: Array
    used: Array


@jit
def _slot(a, state, token):
    mixed = (state * 0x9E3779B1 + token * 0x85EBCA6B) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & 0xFFFFFFFF
    return (mixed * a.edges.shape[0]) >> 32


@jit
def find(a, state, token):
    """Slot of the transition from ``state`` by ``token``, or NONE."""
    slot = _slot(a, state, token)
    while True:
        source = a.edges[slot, SOURCE]
        if source == 0:
            return NONE
        if source == state + 1 and a.edges[slot, TOKEN] == token:
            return slot
        slot += 1
        if slot == a.edges.shape[0]:
            slot = 0


@jit
def _add_edge(a, state, token, target):
    slot = _slot(a, state, token)
    while a.edges[slot, SOURCE] != 0:
        slot += 1
        if slot == a.edges.shape[0]:
            slot = 0
    a.edges[slot, SOURCE] = state + 1
    a.edges[slot, TOKEN] = token
    a.edges[slot, TARGET] = target
    a.edges[slot, AFTER] = a.states[state, HEAD]
    a.states[state, HEAD] = slot
    a.used[NUM_EDGES] += 1


@jit
def _add_state(a, length, link):
    state = a.used[NUM_STATES]
    a.used[NUM_STATES] = state + 1
    a.states[state, LENGTH] = length
    a.states[state, LINK] = link
    a.states[state, HEAD] = NONE
    a.states[state, COUNT] = 0
    a.states[state, RECENT] = NONE
    return state


@jit
def _clone(a, state, token, split):
    """Split off the strings of ``split`` that are one token longer than ``state``'s longest."""
    clone = _add_state(a, a.states[state, LENGTH] + 1, a.states[split, LINK])
    a.states[clone, COUNT] = a.states[split, COUNT]
    a.states[clone, RECENT] = a.states[split, RECENT]
    edge = a.states[split, HEAD]
    while edge != NONE:
        _add_edge(a, clone, a.edges[edge, TOKEN], a.edges[edge, TARGET])
        edge = a.edges[edge, AFTER]
    a.states[split, LINK] = clone
    while state != NONE:
        edge = find(a, state, token)
        if edge == NONE or a.edges[edge, TARGET] != split:
            break
        a.edges[edge, TARGET] = clone
        state = a.states[state, LINK]
    return clone


@jit
def _fanout(a, state):
    edge = a.states[state, HEAD]
    n = 0
    while edge != NONE:
        n += 1
        edge = a.edges[edge, AFTER]
    return n


@jit
def _room(a, states, edges):
    return a.used[NUM_STATES] + states <= a.states.shape[0] and a.used[NUM_EDGES] + edges <= a.edges.shape[0] * MAX_LOAD


@jit
def _advance(a, last, token, path):
    """State of ``last``'s longest string followed by ``token``, made if need be; NONE, nothing changed, when full."""
    edge = find(a, last, token)
    if edge != NONE:
        target = a.edges[edge, TARGET]
        if a.states[target, LENGTH] == a.states[last, LENGTH] + 1:
            return target
        if not _room(a, 1, _fanout(a, target)):
            return NONE
        return _clone(a, last, token, target)
    depth = 0
    state = last
    while state != NONE and edge == NONE:
        path[depth] = state
        depth += 1
        state = a.states[state, LINK]
        if state != NONE:
            edge = find(a, state, token)
    link = ROOT
    split = NONE
    need = depth
    if state != NONE:
        link = a.edges[edge, TARGET]
        if a.states[link, LENGTH] != a.states[state, LENGTH] + 1:
            split = link
            need += _fanout(a, split) + 1
    if not _room(a, 2, need):
        return NONE
    made = _add_state(a, a.states[last, LENGTH] + 1, link)
    for i in range(depth):
        _add_edge(a, path[i], token, made)
    if split != NONE:
        a.states[made, LINK] = _clone(a, state, token, split)
    return made


@jit
def settle(a, state, length):
    """The state on ``state``'s suffix path that holds its suffix of ``length`` tokens."""
    while state != ROOT and a.states[a.states[state, LINK], LENGTH] >= length:
        state = a.states[state, LINK]
    return state


@jit
def extend(a, cursor, tokens, counted, path):
    """Append ``tokens`` to the document's piece; how many went in before the arrays were full.

    ``cursor`` int32 [6]: LAST state, TRUNK state (last COUNTED tokens), TRUNK_LENGTH, tokens IN_PIECE, POSITION
    of the last token, tokens IN_TAIL. ``counted`` False appends text that is counted already (the overlap of two
    pieces).
    """
    for i in range(tokens.size):
        token = tokens[i]
        state = _advance(a, cursor[LAST], token, path)
        if state == NONE:
            return i
        cursor[LAST] = state
        trunk = settle(a, cursor[TRUNK], cursor[TRUNK_LENGTH])
        trunk = a.edges[find(a, trunk, token), TARGET]
        cursor[TRUNK_LENGTH] = min(cursor[TRUNK_LENGTH] + 1, COUNTED)
        trunk = settle(a, trunk, cursor[TRUNK_LENGTH])
        cursor[TRUNK] = trunk
        cursor[IN_PIECE] += 1
        if counted:
            position = a.used[NUM_TOKENS]
            a.used[NUM_TOKENS] = position + 1
            cursor[POSITION] = position
            while trunk != ROOT:
                a.states[trunk, COUNT] += 1
                a.states[trunk, RECENT] = position
                trunk = a.states[trunk, LINK]
            a.states[ROOT, COUNT] += 1
    return tokens.size


@jit
def new_piece(a, cursor, tail, path):
    """Start a piece of the document after its tail; False, nothing changed, when the arrays are full."""
    fresh = np.zeros_like(cursor)
    size = cursor[IN_TAIL]
    if extend(a, fresh, tail[:size], False, path) < size:
        return False
    fresh[IN_PIECE] = 0
    fresh[POSITION] = cursor[POSITION]
    fresh[IN_TAIL] = size
    cursor[:] = fresh
    return True


@jit
def append(a, cursor, tail, tokens, path):
    """Append ``tokens`` to a document, a new piece whenever one is full; how many went in before the arrays were full.

    ``tail`` int32 [MAX_CONTEXT]: the document's last tokens, IN_TAIL of them.
    """
    done = 0
    while done < tokens.size and (cursor[IN_PIECE] < PIECE or new_piece(a, cursor, tail, path)):
        end = min(tokens.size, done + PIECE - cursor[IN_PIECE])
        went = extend(a, cursor, tokens[done:end], True, path)
        for token in tokens[max(done, done + went - MAX_CONTEXT) : done + went]:
            if cursor[IN_TAIL] == MAX_CONTEXT:
                tail[:-1] = tail[1:]
                cursor[IN_TAIL] -= 1
            tail[cursor[IN_TAIL]] = token
            cursor[IN_TAIL] += 1
        done += went
        if done < end:
            break
    return done
