"""The methods ``simulate`` compares, behind one interface: each drafts for one request at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from agspec.build import build_drafter
from agspec.draft.counts import Counts
from agspec.draft.drafter import Drafter
from agspec.draft.kernels import MAX_CONTEXT, jit
from agspec.draft.lookup import SamLookup
from agspec.draft.request import Row
from agspec.errors import MissingExtraError
from agspec.replay.plan import PlannedCall
from agspec.settings import Settings
from agspec.tokens import EMPTY, Tokenizer, Tokens


class Method(Protocol):
    """A drafting method, teacher-forced.

    ``start`` a call, then one ``draft`` after each step: ``sequence`` int32 [n] is prompt and output so far, of which
    the last ``num_new`` tokens came in this step; at most ``room`` tokens come back. ``finish`` ends the call.
    """

    @property
    def counts(self) -> Counts | None: ...

    def start(self, request: str, call: PlannedCall) -> None: ...
    def draft(self, sequence: Tokens, num_new: int, room: int) -> Tokens: ...
    def finish(self) -> None: ...


class NoDraft:
    """One token a step."""

    counts: Counts | None = None

    def start(self, request: str, call: PlannedCall) -> None:
        """See ``Method``."""

    def draft(self, sequence: Tokens, num_new: int, room: int) -> Tokens:
        """Nothing."""
        return EMPTY

    def finish(self) -> None:
        """See ``Method``."""


@jit
def _longest_ngram(tokens, shortest, longest):
    """End of the earliest occurrence of the longest n-gram (shortest <= n <= longest) that ends ``tokens``; or 0."""
    best = shortest - 1
    place = 0
    last = tokens.size - 1
    for end in range(tokens.size - 1):
        n = 0
        while n < longest and n <= end and tokens[end - n] == tokens[last - n]:
            n += 1
        if n > best:
            best = n
            place = end + 1
            if n == longest:
                break
    return place


class Ngram:
    """Prompt lookup as vLLM 0.32 does it: the longest n-gram, its earliest place, a fixed length."""

    counts: Counts | None = None

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def start(self, request: str, call: PlannedCall) -> None:
        """See ``Method``."""

    def draft(self, sequence: Tokens, num_new: int, room: int) -> Tokens:
        """See ``Method``."""
        place = int(_longest_ngram(sequence, self._settings.ngram_min, self._settings.ngram_max))
        return sequence[place : place + min(self._settings.ngram_length, room)] if place else EMPTY

    def finish(self) -> None:
        """See ``Method``."""


class Suffix:
    """SuffixDecoding as vLLM 0.32 drives it (v1/spec_decode/suffix_decoding.py), with its defaults."""

    counts: Counts | None = None

    def __init__(self, settings: Settings) -> None:
        try:
            from arctic_inference.suffix_decoding import SuffixDecodingCache
        except ImportError as error:
            raise MissingExtraError("arctic-inference", "bench") from error
        self._settings = settings
        self._cache = SuffixDecodingCache(
            max_tree_depth=settings.suffix_depth, max_cached_requests=settings.suffix_cached_requests
        )
        self._request = ""

    def start(self, request: str, call: PlannedCall) -> None:
        """See ``Method``."""
        self._request = request
        self._cache.start_request(request, call.prompt)

    def draft(self, sequence: Tokens, num_new: int, room: int) -> Tokens:
        """See ``Method``."""
        s = self._settings
        self._cache.add_active_response(self._request, sequence[sequence.size - num_new :])
        found = self._cache.speculate(
            self._request,
            sequence[-s.suffix_depth :],
            max_spec_tokens=min(s.suffix_depth, room),
            max_spec_factor=s.suffix_factor,
            min_token_prob=s.suffix_min_prob,
        )
        return np.asarray(found.token_ids, np.int32)

    def finish(self) -> None:
        """See ``Method``."""
        self._cache.stop_request(self._request)


class Sam:
    """SAM-Decoding's policy alone (arXiv 2411.10666): one request's text, longest match, most recent, fixed length."""

    counts: Counts | None = None

    def __init__(self, settings: Settings) -> None:
        self._length = settings.sam_length

    def start(self, request: str, call: PlannedCall) -> None:
        """See ``Method``."""
        self._lookup = SamLookup(64 << 20)
        self._document = self._lookup.open()
        self._text = call.prompt.copy()
        self._lookup.extend(self._document, self._text)

    def draft(self, sequence: Tokens, num_new: int, room: int) -> Tokens:
        """See ``Method``."""
        self._lookup.extend(self._document, np.ascontiguousarray(sequence[sequence.size - num_new :]))
        place = self._lookup.latest(sequence[-MAX_CONTEXT:])
        return EMPTY if place is None else sequence[place + 1 : place + 1 + min(self._length, room)]

    def finish(self) -> None:
        """See ``Method``."""


class Agspec:
    """agspec's drafter, the object that the engine drives."""

    def __init__(self, settings: Settings, tokenizer: Tokenizer) -> None:
        self.drafter: Drafter = build_drafter(settings, tokenizer)
        self._request = ""

    @property
    def counts(self) -> Counts:
        """The drafter's own counts."""
        return self.drafter.counts

    def start(self, request: str, call: PlannedCall) -> None:
        """See ``Method``."""
        self._request = request
        for file in call.files:
            self.drafter.open_file("", file.key, file.forms)
        self.drafter.start(request, call.prompt, session=call.session, role=call.role)

    def draft(self, sequence: Tokens, num_new: int, room: int) -> Tokens:
        """See ``Method``."""
        row = Row(self._request, sequence[-max(MAX_CONTEXT, num_new) :], num_new, room)
        draft = self.drafter.propose([row])[0]
        return EMPTY if draft is None else draft.tokens

    def finish(self) -> None:
        """See ``Method``."""
        self.drafter.finish(self._request)


MethodFactory = Callable[[Settings, Tokenizer], Method]

METHODS: dict[str, MethodFactory] = {
    "none": lambda settings, tokenizer: NoDraft(),
    "ngram": lambda settings, tokenizer: Ngram(settings),
    "suffix": lambda settings, tokenizer: Suffix(settings),
    "sam": lambda settings, tokenizer: Sam(settings),
    "agspec": lambda settings, tokenizer: Agspec(settings.with_lookup("sam"), tokenizer),
    "agspec-suffix": lambda settings, tokenizer: Agspec(settings.with_lookup("suffix-tree"), tokenizer),
}
