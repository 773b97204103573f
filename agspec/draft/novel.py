"""What of a prompt is new to a session: agents resend their history, move file blocks and condense.

The prompt's common prefix with an earlier one of the session is skipped. The rest is cut into chunks at places that
depend on the last few tokens only (content-defined chunking), so that a block that moved is cut as before; chunks
seen before are skipped, neighbours among the others are joined.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from agspec.draft.kernels import jit
from agspec.tokens import Tokens

REMEMBERED = 4
"""Earlier prompts of a session kept for the common prefix: sub-agents take turns."""
CHUNK_BITS = 6
"""A chunk ends at one in 2**CHUNK_BITS places, but holds at least SHORTEST_CHUNK tokens."""
SHORTEST_CHUNK = 16


@jit
def _chunks(tokens, ends, hashes):
    """Fill ``ends`` and ``hashes`` (FNV-1a over the ids) of the chunks of ``tokens``; how many."""
    n = 0
    whole = np.uint64(14695981039346656037)
    window = np.uint32(0xFFFFFFFF)
    start = 0
    for i in range(tokens.size):
        whole = (whole ^ np.uint64(tokens[i])) * np.uint64(1099511628211)
        window = np.uint32((window << np.uint32(8)) ^ np.uint32((tokens[i] * 0x9E3779B1) & 0xFFFFFFFF) >> np.uint32(7))
        last = i == tokens.size - 1
        if last or (window >> np.uint32(32 - CHUNK_BITS) == 0 and i - start >= SHORTEST_CHUNK - 1):
            ends[n] = i + 1
            hashes[n] = whole
            n += 1
            whole = np.uint64(14695981039346656037)
            start = i + 1
    return n


def common_prefix(a: Tokens, b: Tokens) -> int:
    """Length of the common prefix."""
    n = min(a.size, b.size)
    differ = np.flatnonzero(a[:n] != b[:n])
    return int(differ[0]) if differ.size else n


@dataclass
class Novelty:
    """What a session has seen of prompts and outputs."""

    _earlier: deque[Tokens] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _seen: set[int] = field(default_factory=set)

    def spans(self, prompt: Tokens) -> list[tuple[int, int]]:
        """(start, end) of the parts of ``prompt`` not seen before, in order; from now on they are seen."""
        known = max((common_prefix(earlier, prompt) for earlier in self._earlier), default=0)
        spans: list[tuple[int, int]] = []
        for start, end, value in self._cut(prompt, known):
            if value in self._seen:
                continue
            self._seen.add(value)
            if spans and spans[-1][1] == start:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
        return spans

    def remember(self, prompt: Tokens, output: Tokens) -> None:
        """The request is over: its output is seen, prompt and output are the next prompt's likely prefix."""
        whole = np.concatenate((prompt, output))
        self._seen.update(value for _, _, value in self._cut(whole, int(prompt.size)))
        for i, earlier in enumerate(self._earlier):
            if common_prefix(earlier, whole) == earlier.size:
                del self._earlier[i]
                break
        self._earlier.append(whole)

    @property
    def memory_bytes(self) -> int:
        """Bytes of remembered prompts and chunk hashes."""
        return sum(tokens.nbytes for tokens in self._earlier) + 64 * len(self._seen)

    @staticmethod
    def _cut(tokens: Tokens, start: int) -> list[tuple[int, int, int]]:
        rest = tokens[start:]
        ends = np.empty(rest.size, np.int64)
        hashes = np.empty(rest.size, np.uint64)
        n = int(_chunks(rest, ends, hashes))
        cuts = [start, *(ends[:n] + start).tolist()]
        return [(cuts[i], cuts[i + 1], value) for i, value in enumerate(hashes[:n].tolist())]
