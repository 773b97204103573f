"""Which region of an output is being written, token by token: markers found by one automaton over bytes.

The automaton is Aho and Corasick's (1975), its failure links resolved, so that a byte costs one look into a table. A
marker says for each region which one follows: a fence opens a file body in prose and closes it there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from agspec.draft.kernels import jit
from agspec.draft.names import REGION_NAMES

NODE, REGION = 0, 1


@jit
def walk(tokens, tables, state, out):
    """``out[k]``: the region in which ``tokens[k]`` is written; ``state`` int64 [2] is moved past all of them."""
    starts, data, table, after = tables
    node, region = state[NODE], state[REGION]
    for k in range(tokens.size):
        out[k] = region
        if 0 <= tokens[k] < starts.size - 1:
            for i in range(starts[tokens[k]], starts[tokens[k] + 1]):
                node = table[node, data[i]]
                region = after[node, region]
    state[NODE], state[REGION] = node, region


@jit
def walk_on(tokens, tables, state):
    """Move ``state`` int64 [2] past ``tokens``; a new output starts at zeros."""
    walk(tokens, tables, state, np.empty(tokens.size, np.int8))


@jit
def walk_all(tokens, sizes, tables, state, out):
    """``walk`` over the first ``sizes[i]`` of each row of ``tokens``, every time from ``state``, which stays."""
    now = np.empty(2, np.int64)
    for i in range(sizes.size):
        if sizes[i]:
            now[:] = state
            walk(tokens[i, : sizes[i]], tables, now, out[i])


class Regions:
    """Markers over the texts of a vocabulary.

    ``markers``: (bytes, region that follows for each of REGION_NAMES). ``texts``: bytes of each token id. ``tables``:
    for the functions above.
    """

    def __init__(self, markers: Sequence[tuple[bytes, Sequence[int]]], texts: Sequence[bytes]) -> None:
        children: list[dict[int, int]] = [{}]
        found: list[Sequence[int]] = [range(len(REGION_NAMES))]
        for text, follows in markers:
            node = 0
            for byte in text:
                if byte not in children[node]:
                    children[node][byte] = len(children)
                    children.append({})
                    found.append(found[0])
                node = children[node][byte]
            found[node] = follows
        table = np.zeros((len(children), 256), np.int32)
        fails = [0] * len(children)
        queue = deque([0])
        while queue:
            node = queue.popleft()
            if node:
                table[node] = table[fails[node]]
                if found[node] is found[0]:
                    found[node] = found[fails[node]]
            for byte, child in children[node].items():
                fails[child] = int(table[node, byte])
                table[node, byte] = child
                queue.append(child)
        self.tables = (
            np.cumsum([0, *map(len, texts)], dtype=np.int64),
            np.frombuffer(b"".join(texts) or b"\0", np.uint8),
            table,
            np.array([list(follows) for follows in found], np.int64),
        )
