"""REST (He et al., arXiv 2311.08252) as a chain, for vLLM verifies chains.

As in the paper: a datastore of earlier outputs (section 3.1); the context's longest suffix that occurs there, tried
from 16 tokens down to 1; all its occurrences' continuations in a trie, of which the most frequent are kept (3.2).
A tree of them is verified there; here the trie's heaviest path is, as far as the fixed draft length goes. The paper
fills the datastore beforehand; a cold one here fills with the outputs of each session when that session is over.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agspec.replay.plan import PlannedCall
from agspec.tokens import EMPTY, Tokens
from benchmarks.table.texts import Values

LONGEST_MATCH = 16
"""Longest suffix that is looked up (n_max)."""
LONGEST_DRAFT = 16
"""Tokens of a continuation."""
MOST_PLACES = 5000
"""Occurrences that are looked at, the latest ones."""
_BREAK = -1


class RestText:
    """The datastore, and drafts from it."""

    def __init__(self) -> None:
        self._store = np.full(1, _BREAK, np.int32)
        self._order: npt.NDArray[np.intp] = np.zeros(1, np.intp)
        self._sorted = self._store
        self._session: str | None = None
        self._waiting: list[Tokens] = []
        self._found: tuple[int, Tokens] = (0, EMPTY)

    def start(self, call: PlannedCall) -> None:
        """See ``Text``."""
        if self._session != call.session:
            self._take_in()
        self._session = call.session
        self._tape = call.tape
        self._found = (0, EMPTY)

    def feed(self, tokens: Tokens) -> None:
        """See ``Text``."""

    def draft(self, sequence: Tokens, values: Values) -> Tokens:
        """See ``Text``."""
        if self._found[0] != sequence.size:
            self._found = (sequence.size, self._heaviest(sequence[-LONGEST_MATCH:]))
        return self._found[1][: min(int(values["rest_length"]), int(values["max_draft"]))]

    def finish(self) -> None:
        """See ``Text``."""
        self._waiting.append(self._tape)

    def _take_in(self) -> None:
        if not self._waiting:
            return
        ends = np.full(1, _BREAK, np.int32)
        self._store = np.concatenate([self._store, *(part for tape in self._waiting for part in (tape, ends))])
        self._waiting = []
        self._order = np.argsort(self._store, kind="stable")
        self._sorted = self._store[self._order]

    def _heaviest(self, context: Tokens) -> Tokens:
        """The most frequent continuation, token by token, after the longest suffix of ``context`` that occurs."""
        low, high = (int(np.searchsorted(self._sorted, context[-1], side)) for side in ("left", "right"))
        places = self._order[low:high]
        for n in range(1, context.size):
            longer = places[self._store[places - n] == context[-1 - n]]
            if not longer.size:
                break
            places = longer
        places = places[-MOST_PLACES:]
        path: list[int] = []
        while places.size > 1 and len(path) < LONGEST_DRAFT:
            following = self._store[places + 1]
            tokens, counts = np.unique(following[following != _BREAK], return_counts=True)
            if not tokens.size:
                break
            heaviest = tokens[int(np.argmax(counts))]
            path.append(int(heaviest))
            places = places[following == heaviest] + 1
        if places.size == 1:
            rest = self._store[places[0] + 1 : places[0] + 1 + LONGEST_DRAFT - len(path)]
            ends = np.flatnonzero(rest == _BREAK)
            path += rest[: ends[0] if ends.size else None].tolist()
        return np.asarray(path, np.int32)
