"""One compiled look-up in all parts of a lookup, told by address; see ``addresses``."""

from __future__ import annotations

import numpy as np

from agspec.draft import blend, sampling
from agspec.draft.addresses import (
    AUTOMATON,
    END,
    FIRST,
    KIND,
    NUM_FIRST,
    NUM_SECOND,
    NUM_THIRD,
    SECOND,
    THIRD,
    automaton,
    numbers,
)
from agspec.draft.kernels import MAX_CONTEXT, jit


@jit
def _part(part, context, floor, limit, tokens, probs, counts, hits):
    if part[KIND] == AUTOMATON:
        return blend.draft(automaton(part), context, floor, limit, tokens, probs, counts, hits)
    n, length = sampling.draft(
        numbers(part[FIRST], part[NUM_FIRST]), numbers(part[SECOND], part[NUM_SECOND]),
        numbers(part[THIRD], part[NUM_THIRD]), context, floor, limit, tokens, probs, counts, hits,
    )  # fmt: skip
    return n, length, float(n)


@jit
def fill(parts, context, floor, limit, tokens, probs, counts, hits):
    """Of what the ``parts`` know, write the continuation with most expected tokens; (tokens, length of the match).

    See ``lookup.Lookup.fill``.
    """
    context = context[-MAX_CONTEXT:]
    n, length, most = _part(parts[0], context, floor, limit, tokens, probs, counts, hits)
    i = 1
    while parts[i, KIND] != END:
        other, other_probs = np.empty(limit, np.int32), np.empty(limit)
        other_counts, other_hits = np.empty(limit, np.int32), np.empty(limit, np.int32)
        m, matched, expected = _part(parts[i], context, floor, limit, other, other_probs, other_counts, other_hits)
        if expected > most:
            n, length, most = m, matched, expected
            tokens[:n], probs[:n] = other[:n], other_probs[:n]
            counts[:n], hits[:n] = other_counts[:n], other_hits[:n]
        i += 1
    return (n, length) if n else (0, 0)
