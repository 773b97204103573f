"""The continuation of a context that an automaton's evidence makes likeliest; compiled, no classes.

Each suffix of the match is an order. An order's counts, and its latest continuation, correct what the next shorter
order says, the more the longer it is (interpolated back-off, as in PPM: Cleary and Witten 1984).
"""

import numpy as np

from agspec.draft.kernels import (
    AFTER,
    COUNT,
    HEAD,
    LENGTH,
    LINK,
    MAX_CONTEXT,
    NONE,
    RECENT,
    ROOT,
    TARGET,
    TOKEN,
    find,
    jit,
    settle,
)
from agspec.draft.reading import longest

ORDERS = 12
"""Context orders (suffixes of the match) whose evidence is blended."""
CHOICES = 24
"""Continuations looked at for one order."""
DEEP = 4
"""Orders whose continuations are candidates, longest first."""
FRESH = 1.0
"""What the latest continuation counts for on top of its occurrences."""
PRIOR = np.array([9.0, 4.0, 2.5, 1.6, 1.2, 1.0, 0.8, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3, 0.28, 0.26, 0.25, 0.2])
"""Doubt by match length, 0 to 16 and above."""


@jit
def doubt(length):
    """Weight, in occurrences, of what shorter contexts say against one of ``length`` tokens."""
    return PRIOR[min(length, PRIOR.size - 1)]


@jit
def _blend(a, chain, lengths, n, token, latest, followed, edges):
    """Chance that ``token`` follows, from all orders: each corrects what the next shorter one says.

    A document may go on after text that is not counted, so that more followed a context than it occurred. ``edges``
    gets each order's transition by ``token``.
    """
    p = 0.0
    for i in range(n - 1, -1, -1):
        state = chain[i]
        total = a.states[state, COUNT]
        edge = find(a, state, token)
        edges[i] = edge
        seen = 0.0
        if edge != NONE:
            seen = float(a.states[a.edges[edge, TARGET], COUNT])
        total = max(total, followed[i] if i < DEEP else seen)
        if total <= 0:
            continue
        if edge != NONE and i < DEEP and latest[i] == a.states[a.edges[edge, TARGET], RECENT]:
            seen += FRESH
        weight = doubt(lengths[i])
        extra = FRESH if i < DEEP and latest[i] >= 0 else 0.0
        p = (seen + weight * p) / (total + extra + weight)
    return p


@jit
def draft(a, context, floor, limit, tokens, probs, counts, hits):
    """Greedy continuation of ``context`` by blended chance; (number of tokens, length of the match, expected tokens).

    Fills ``tokens``, ``probs``, ``counts`` (occurrences of the longest order) and ``hits`` (how often the token
    followed it), all [``limit`` or more], while the product of chances stays >= ``floor``.
    """
    chain = np.empty(ORDERS, np.int32)
    lengths = np.empty(ORDERS, np.int32)
    latest = np.empty(DEEP, np.int32)
    followed = np.empty(DEEP, np.float64)
    asked = np.empty(DEEP * CHOICES, np.int32)
    answers = np.empty(DEEP * CHOICES, np.float64)
    edges = np.empty(ORDERS, np.int32)
    chosen = np.empty(ORDERS, np.int32)
    state, length = longest(a, context)
    n = 0
    matched = 0
    while state != ROOT and n < ORDERS:
        if a.states[state, HEAD] != NONE:
            if n == 0:
                matched = length
            chain[n] = state
            lengths[n] = length
            n += 1
        state = a.states[state, LINK]
        length = a.states[state, LENGTH]
    survival, expected = 1.0, 0.0
    made = 0
    while made < limit and n > 0:
        deep = min(n, DEEP)
        for i in range(deep):
            latest[i] = NONE
            followed[i] = 0.0
            edge = a.states[chain[i], HEAD]
            looked = 0
            while edge != NONE and looked < CHOICES:
                latest[i] = max(latest[i], a.states[a.edges[edge, TARGET], RECENT])
                followed[i] += a.states[a.edges[edge, TARGET], COUNT]
                edge = a.edges[edge, AFTER]
                looked += 1
        best = -1.0
        choice = NONE
        when = NONE
        num_asked = 0
        for i in range(deep):
            edge = a.states[chain[i], HEAD]
            looked = 0
            while edge != NONE and looked < CHOICES:
                token = a.edges[edge, TOKEN]
                known = 0
                while known < num_asked and asked[known] != token:
                    known += 1
                new = known == num_asked
                if new:
                    asked[known] = token
                    answers[known] = _blend(a, chain, lengths, n, token, latest, followed, edges)
                    num_asked += 1
                p = answers[known]
                recent = a.states[a.edges[edge, TARGET], RECENT]
                if p > best or (p == best and recent > when):
                    if token != choice:
                        if not new:
                            _blend(a, chain, lengths, n, token, latest, followed, edges)
                        chosen[:n] = edges[:n]
                    best, choice, when = p, token, recent
                edge = a.edges[edge, AFTER]
                looked += 1
        survival *= best
        if choice == NONE or survival < floor:
            break
        expected += survival
        tokens[made] = choice
        probs[made] = best
        counts[made] = a.states[chain[0], COUNT]
        edge = chosen[0]
        hits[made] = 0 if edge == NONE else a.states[a.edges[edge, TARGET], COUNT]
        made += 1
        kept = 0
        for i in range(n):
            edge = chosen[i]
            if edge == NONE:
                continue
            length = min(lengths[i] + 1, MAX_CONTEXT)
            state = settle(a, a.edges[edge, TARGET], length)
            while state != ROOT and a.states[state, HEAD] == NONE:
                length = a.states[a.states[state, LINK], LENGTH]
                state = a.states[state, LINK]
            if state == ROOT or (kept > 0 and chain[kept - 1] == state):
                continue
            chain[kept] = state
            lengths[kept] = length
            kept += 1
        n = kept
    return made, matched, expected
