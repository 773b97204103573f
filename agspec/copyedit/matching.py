"""Where a text stands in others, line by line: the longest run of lines at each place, moves found too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


def longest_runs(sources: Sequence[Sequence[bytes]], target: Sequence[bytes]) -> tuple[Integers, Integers]:
    """For each line of ``target``: how many lines from it on stand in a source, and where there, int64 [n] each.

    Places count the lines of all sources one after another; runs do not cross from one source into the next. Of equally
    long runs a neighbour in suffix order counts. By a suffix array over lines (Manber and Myers 1993) and its LCPs
    (Kasai et al. 2001): O(n log^2 n).
    """
    numbers: dict[bytes, int] = {}
    ids: list[int] = []
    ends: list[int] = []
    for lines in sources:
        ids += [numbers.setdefault(line, len(numbers)) for line in lines]
        ids.append(-1)
        ends.append(len(ids) - 1)
    start = len(ids)
    ids += [numbers.setdefault(line, len(numbers)) for line in target]
    if not target or start == len(sources):
        return np.zeros(len(target), np.int64), np.zeros(len(target), np.int64)
    for number, end in enumerate(ends):
        ids[end] = -1 - number  # no two ends are alike, and none is a line
    text = np.asarray(ids, np.int64)
    order = suffix_order(text)
    shared = common(text, order)
    length, place = np.zeros(len(target), np.int64), np.zeros(len(target), np.int64)
    for ranks in (range(order.size), range(order.size - 1, -1, -1)):
        step = ranks.step
        near, run = -1, 0
        for rank in ranks:
            at = int(order[rank])
            if rank != ranks.start:
                run = min(run, int(shared[rank if step > 0 else rank + 1]))
            if at < start:
                near, run = at, text.size
            elif near >= 0 and run > length[at - start]:
                length[at - start], place[at - start] = run, near
    return length, place


def suffix_order(text: Integers) -> Integers:
    """Suffixes of ``text`` in ascending order, by doubling."""
    n = text.size
    rank = np.unique(text, return_inverse=True)[1].astype(np.int64)
    width = 1
    while True:
        second = np.full(n, -1, np.int64)
        second[: n - width] = rank[width:] if width < n else second[: n - width]
        order = np.lexsort((second, rank))
        first, other = rank[order], second[order]
        new = np.concatenate(([0], ((first[1:] != first[:-1]) | (other[1:] != other[:-1])).cumsum()))
        rank[order] = new
        width *= 2
        if new[-1] == n - 1 or width >= n:
            return np.asarray(order, np.int64)


def common(text: Integers, order: Integers) -> Integers:
    """How many items a suffix shares with the one before it in ``order``; 0 for the first."""
    n = text.size
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    items, ranks, before = text.tolist(), rank.tolist(), order.tolist()
    found = np.zeros(n, np.int64)
    h = 0
    for i in range(n):
        if not ranks[i]:
            h = 0
            continue
        j = before[ranks[i] - 1]
        while i + h < n and j + h < n and items[i + h] == items[j + h]:
            h += 1
        found[ranks[i]] = h
        h = max(0, h - 1)
    return found
