"""Compiled functions over a suffix array of reversed contexts; no classes.

``tokens`` int32 [n]: documents, a SEPARATOR before the first and after each. ``order`` int32 [m]: the positions that
something follows in their document, sorted by the text that ends there, read backwards: newest token first, at most
MAX_CONTEXT tokens, ended by the document's beginning; equal texts by position. ``heads`` int32 [vocabulary + 1]: where
in ``order`` the positions of each token begin. All contexts with a common ending are neighbours, so one binary search
finds the longest ending that occurs, and the interval of a shorter one encloses that of a longer.
"""

import numpy as np

from agspec.draft.kernels import MAX_CONTEXT, jit

SEPARATOR = -1
SMALL = 12
"""Groups up to this size are sorted by insertion."""


@jit
def _before(tokens, a, b, depth):
    """Whether position ``a`` sorts before ``b``, whose newest ``depth`` tokens are equal."""
    for d in range(depth, MAX_CONTEXT):
        x = tokens[a - d]
        y = tokens[b - d]
        if x != y:
            return x < y
        if x == SEPARATOR:
            break
    return a < b


@jit
def followed(tokens, out):
    """Fill ``out`` with the positions of ``tokens`` that a token of their document follows; their number."""
    n = 0
    for i in range(tokens.size - 1):
        if tokens[i] != SEPARATOR and tokens[i + 1] != SEPARATOR:
            out[n] = i
            n += 1
    return n


@jit
def _middle(a, b, c):
    return max(min(a, b), min(max(a, b), c))


@jit
def sort(tokens, order):
    """Sort ``order`` in place: three-way radix quicksort (Bentley and Sedgewick 1997), one token a level.

    The tokens of a level are copied beside the positions, so that only a deeper level reads ``tokens`` anew.
    """
    keys = np.empty(order.size, np.int32)
    stack = np.empty((256, 4), np.int64)
    parts = np.empty((3, 4), np.int64)
    stack[0] = (0, order.size, 0, 0)
    top = 1
    while top > 0:
        top -= 1
        low, high, depth, loaded = stack[top]
        if high - low <= SMALL:
            for i in range(low + 1, high):
                moved = order[i]
                j = i
                while j > low and _before(tokens, moved, order[j - 1], depth):
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = moved
            continue
        if depth == MAX_CONTEXT:
            order[low:high].sort()
            continue
        if loaded == 0:
            for i in range(low, high):
                keys[i] = tokens[order[i] - depth]
        pivot = _middle(keys[low], keys[(low + high) // 2], keys[high - 1])
        less, at, more = low, low, high
        while at < more:
            key = keys[at]
            if key < pivot:
                keys[at], keys[less] = keys[less], key
                order[at], order[less] = order[less], order[at]
                less += 1
                at += 1
            elif key > pivot:
                more -= 1
                keys[at], keys[more] = keys[more], key
                order[at], order[more] = order[more], order[at]
            else:
                at += 1
        parts[0] = (low, less, depth, 1)
        parts[1] = (less, more, MAX_CONTEXT if pivot == SEPARATOR else depth + 1, 0)
        parts[2] = (more, high, depth, 1)
        largest = 0
        for i in range(1, 3):
            if parts[i, 1] - parts[i, 0] > parts[largest, 1] - parts[largest, 0]:
                largest = i
        for i in range(3):
            part = parts[(largest + i) % 3]
            if part[1] - part[0] > 1:
                stack[top] = part
                top += 1


@jit
def _wins(tokens, heads, a, b):
    """Whether run ``a``'s next position comes before run ``b``'s; a run at its end (head < 0) never does."""
    if heads[a] < 0 or heads[b] < 0:
        return heads[b] < 0
    return _before(tokens, heads[a], heads[b], 0)


@jit
def start_merge(tokens, runs, at, ends, heads, tree):
    """Set up the merge of the sorted runs ``runs[at[i]:ends[i]]``; ``heads`` int64 [k], ``tree`` int64 [2 k]."""
    k = at.size
    for i in range(k):
        heads[i] = runs[at[i]] if at[i] < ends[i] else -1
    winners = np.empty(2 * k, np.int64)
    for node in range(2 * k - 1, 0, -1):
        if node >= k:
            winners[node] = node - k
            continue
        a, b = winners[2 * node], winners[2 * node + 1]
        first = _wins(tokens, heads, a, b)
        winners[node] = a if first else b
        tree[node] = b if first else a
    tree[0] = winners[1]


@jit
def merge(tokens, runs, at, ends, heads, tree, out):
    """Fill ``out`` with the next positions of the merge (a tree of losers: Knuth, volume 3, 5.4.1); their number."""
    k = at.size
    for n in range(out.size):
        winner = tree[0]
        if heads[winner] < 0:
            return n
        out[n] = heads[winner]
        at[winner] += 1
        heads[winner] = runs[at[winner]] if at[winner] < ends[winner] else -1
        node = (k + winner) // 2
        while node > 0:
            if _wins(tokens, heads, tree[node], winner):
                winner, tree[node] = tree[node], winner
            node //= 2
        tree[0] = winner
    return out.size


@jit
def first_unsorted(tokens, places):
    """Index of the first of ``places`` that does not sort after the one before it, or their number."""
    for i in range(1, places.size):
        if not _before(tokens, places[i - 1], places[i], 0):
            return i
    return places.size


@jit
def common(tokens, place, context, start, limit):
    """How many newest tokens ``context`` and the text ending at ``place`` share, up to ``limit``; ``start`` known."""
    last = context.size - 1
    n = start
    while n < limit and tokens[place - n] == context[last - n]:
        n += 1
    return n


@jit
def search(tokens, order, heads, context):
    """Longest ending of ``context`` that occurs: (its length, an index of ``order`` whose text ends with it)."""
    size = context.size
    if size == 0 or context[-1] < 0 or context[-1] >= heads.size - 1:
        return 0, 0
    low, high = heads[context[-1]], heads[context[-1] + 1]
    if low == high:
        return 0, 0
    below, above = 0, 0
    start, end = low, high
    while low < high:
        middle = (low + high) // 2
        place = order[middle]
        n = common(tokens, place, context, max(1, min(below, above)), size)
        if n < size and tokens[place - n] < context[size - 1 - n]:
            low, below = middle + 1, n
        else:
            high, above = middle, n
    if low == end or (low > start and below > above):
        return below, low - 1
    return above, low


@jit
def widen(tokens, order, heads, context, length, low, high):
    """The interval of the newest ``length`` (>= 1) tokens of ``context``; ``low``:``high`` lies within it."""
    start, end = heads[context[-1]], heads[context[-1] + 1]
    step = 1
    while low - step >= start and common(tokens, order[low - step], context, 1, length) == length:
        low -= step
        step *= 2
    outside = max(start - 1, low - step)
    while low - outside > 1:
        middle = (low + outside) // 2
        if common(tokens, order[middle], context, 1, length) == length:
            low = middle
        else:
            outside = middle
    step = 1
    while high - 1 + step < end and common(tokens, order[high - 1 + step], context, 1, length) == length:
        high += step
        step *= 2
    outside = min(end, high - 1 + step)
    while outside - high > 0:
        middle = (high + outside) // 2
        if common(tokens, order[middle], context, 1, length) == length:
            high = middle + 1
        else:
            outside = middle
    return low, high


@jit
def next_shorter(tokens, order, heads, context, low, high):
    """Length of the longest ending of ``context`` that occurs more often than in ``low``:``high``; 0: none."""
    length = 0
    if low > heads[context[-1]]:
        length = common(tokens, order[low - 1], context, 1, context.size)
    if high < heads[context[-1] + 1]:
        length = max(length, common(tokens, order[high], context, 1, context.size))
    return length
