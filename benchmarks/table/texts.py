"""The baselines as a sweep drives them: what they keep depends on the text alone, not on how they are set.

So one pass over the sessions tries every setting of a baseline. They draft as agspec.replay.methods does, which
tests/test_table.py holds them to.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from agspec.draft.kernels import MAX_CONTEXT
from agspec.draft.lookup import SamLookup
from agspec.errors import MissingExtraError
from agspec.replay.methods import longest_ngram
from agspec.replay.plan import PlannedCall
from agspec.tokens import EMPTY, Tokens

Values = Mapping[str, float]
"""Settings of a baseline by their names in agspec.settings, and ``max_draft``: the longest draft."""


class Text(Protocol):
    """What a baseline keeps of the text, and what it drafts under given settings.

    ``start`` a call, ``feed`` each token of its output in order, ``draft`` after any of them, ``finish`` the call.
    ``sequence`` int32 [n] is prompt and output so far.
    """

    def start(self, call: PlannedCall) -> None: ...
    def feed(self, tokens: Tokens) -> None: ...
    def draft(self, sequence: Tokens, values: Values) -> Tokens: ...
    def finish(self) -> None: ...


class NgramText:
    """Prompt lookup."""

    def __init__(self) -> None:
        self._place: dict[tuple[int, int, int], int] = {}

    def start(self, call: PlannedCall) -> None:
        """See ``Text``."""
        self._place.clear()

    def feed(self, tokens: Tokens) -> None:
        """See ``Text``."""

    def draft(self, sequence: Tokens, values: Values) -> Tokens:
        """See ``Text``."""
        shortest, longest = int(values["ngram_min"]), int(values["ngram_max"])
        key = (sequence.size, shortest, longest)
        if key not in self._place:
            self._place[key] = int(longest_ngram(sequence, shortest, longest))
        place = self._place[key]
        length = min(int(values["ngram_length"]), int(values["max_draft"]))
        return sequence[place : place + length] if place else EMPTY

    def finish(self) -> None:
        """See ``Text``."""


class SuffixText:
    """SuffixDecoding's cache of one tree depth."""

    def __init__(self, depth: int) -> None:
        try:
            cache = import_module("arctic_inference.suffix_decoding").SuffixDecodingCache
        except ImportError as error:
            raise MissingExtraError("arctic-inference", "bench") from error
        self._depth = depth
        self._cache: Any = cache(max_tree_depth=depth, max_cached_requests=10_000)
        self._request = 0

    def start(self, call: PlannedCall) -> None:
        """See ``Text``."""
        self._request += 1
        self._cache.start_request(self._request, call.prompt)

    def feed(self, tokens: Tokens) -> None:
        """See ``Text``."""
        self._cache.add_active_response(self._request, np.ascontiguousarray(tokens))

    def draft(self, sequence: Tokens, values: Values) -> Tokens:
        """See ``Text``."""
        found = self._cache.speculate(
            self._request,
            sequence[-self._depth :],
            max_spec_tokens=min(self._depth, int(values["max_draft"])),
            max_spec_factor=values["suffix_factor"],
            min_token_prob=values["suffix_min_prob"],
        )
        return np.asarray(found.token_ids, np.int32)

    def finish(self) -> None:
        """See ``Text``."""
        self._cache.stop_request(self._request)


class SamText:
    """SAM-Decoding's automaton of one request."""

    def start(self, call: PlannedCall) -> None:
        """See ``Text``."""
        self._lookup = SamLookup(64 << 20)
        self._document = self._lookup.open()
        self._lookup.extend(self._document, call.prompt.copy())
        self._found: tuple[int, int | None] = (0, None)

    def feed(self, tokens: Tokens) -> None:
        """See ``Text``."""
        self._lookup.extend(self._document, np.ascontiguousarray(tokens))

    def draft(self, sequence: Tokens, values: Values) -> Tokens:
        """See ``Text``."""
        if self._found[0] != sequence.size:
            self._found = (sequence.size, self._lookup.latest(sequence[-MAX_CONTEXT:]))
        place = self._found[1]
        length = min(int(values["sam_length"]), int(values["max_draft"]))
        return EMPTY if place is None else sequence[place + 1 : place + 1 + length]

    def finish(self) -> None:
        """See ``Text``."""
