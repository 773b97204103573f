"""The continuation that samples of a suffix array's evidence make likeliest; compiled, no classes.

The longest ending of the context that occurs, and the shorter ones that occur more often, are levels; each level's
occurrences beyond those of the level before it are sampled. A token's chance is blended over the levels, the longer
correcting the shorter (interpolated back-off, as in PPM: Cleary and Witten 1984).
"""

import numpy as np

from agspec.draft.blend import doubt
from agspec.draft.kernels import jit
from agspec.draft.suffix_array import SEPARATOR, next_shorter, search, widen

LEVELS = 10
"""Endings of the context whose evidence is blended."""
SAMPLES = 24
"""Occurrences looked at in all."""
PER_LEVEL = 10
"""Occurrences looked at for one level."""
ENOUGH = 64
"""Occurrences of an ending after which no shorter one is asked."""


@jit
def _take(order, first, number, low, high, wanted, level, places, levels, weights, n):
    """Add ``wanted`` of the ``number`` occurrences outside ``low``:``high`` from ``first`` on, evenly spread."""
    for j in range(wanted):
        i = first + (j * (number - 1) // (wanted - 1) if wanted > 1 else number - 1)
        if i >= low:
            i += high - low
        places[n] = order[i]
        levels[n] = level
        weights[n] = number / wanted
        n += 1
    return n


@jit
def gather(tokens, order, heads, context, places, levels, weights, lengths):
    """Fill ``places``, ``levels`` and ``weights`` [SAMPLES] and ``lengths`` [LEVELS]; (samples, levels)."""
    length, found = search(tokens, order, heads, context)
    if length == 0:
        return 0, 0
    low, high = found, found
    first, end = widen(tokens, order, heads, context, length, found, found + 1)
    n, level = 0, 0
    while True:
        lengths[level] = length
        number = (end - first) - (high - low)
        wanted = min(number, PER_LEVEL, SAMPLES - n)
        n = _take(order, first, number, low, high, wanted, level, places, levels, weights, n)
        low, high = first, end
        level += 1
        if high - low >= ENOUGH or level == LEVELS or n == SAMPLES:
            break
        length = next_shorter(tokens, order, heads, context, low, high)
        if length == 0:
            break
        first, end = widen(tokens, order, heads, context, length, low, high)
    return n, level


@jit
def draft(tokens, order, heads, context, floor, limit, out, probs, counts, hits):
    """Greedy continuation of ``context`` (newest last, at most MAX_CONTEXT tokens); (tokens, length of the match).

    Fills ``out``, ``probs``, ``counts`` (occurrences of the longest ending that is left) and ``hits`` (of these, as
    many as the chance says), all [``limit`` or more], while the product of chances stays >= ``floor``.
    """
    places = np.empty(SAMPLES, np.int64)
    levels = np.empty(SAMPLES, np.int64)
    weights = np.empty(SAMPLES, np.float64)
    lengths = np.empty(LEVELS, np.int64)
    alive, num_levels = gather(tokens, order, heads, context, places, levels, weights, lengths)
    matched = lengths[0] if alive else 0
    choices = np.empty(SAMPLES, np.int32)
    which = np.empty(SAMPLES, np.int64)
    seen = np.empty((SAMPLES, LEVELS), np.float64)
    total = np.empty(LEVELS, np.float64)
    survival = 1.0
    made = 0
    while made < limit and alive > 0:
        num_choices = 0
        total[:] = 0.0
        kept = 0
        for i in range(alive):
            token = tokens[places[i] + 1 + made]
            if token == SEPARATOR:
                continue
            places[kept], levels[kept], weights[kept] = places[i], levels[i], weights[i]
            choice = 0
            while choice < num_choices and choices[choice] != token:
                choice += 1
            if choice == num_choices:
                choices[choice] = token
                seen[choice] = 0.0
                num_choices += 1
            which[kept] = choice
            seen[choice, levels[kept]] += weights[kept]
            total[levels[kept]] += weights[kept]
            kept += 1
        alive = kept
        if alive == 0:
            break
        for level in range(1, num_levels):
            total[level] += total[level - 1]
        best = -1.0
        chosen = 0
        for choice in range(num_choices):
            for level in range(1, num_levels):
                seen[choice, level] += seen[choice, level - 1]
            p = 0.0
            for level in range(num_levels - 1, -1, -1):
                if total[level] > 0:
                    weight = doubt(lengths[level] + made)
                    p = (seen[choice, level] + weight * p) / (total[level] + weight)
            if p > best:
                best, chosen = p, choice
        survival *= best
        if survival < floor:
            break
        out[made] = choices[chosen]
        probs[made] = best
        counts[made] = int(total[levels[0]] + 0.5)
        hits[made] = int(np.rint(best * counts[made]))
        made += 1
        kept = 0
        for i in range(alive):
            if which[i] == chosen:
                places[kept], levels[kept], weights[kept] = places[i], levels[i], weights[i]
                kept += 1
        alive = kept
    return made, matched
