"""The methods ``simulate`` compares, behind one interface: each drafts for the requests of a step together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from agspec.build import build_drafter
from agspec.draft.counts import Counts
from agspec.draft.drafter import Drafter
from agspec.draft.kernels import MAX_CONTEXT, jit
from agspec.draft.lookup import SamDocument, SamLookup
from agspec.draft.novel import common_prefix
from agspec.draft.odds import OddsState
from agspec.draft.request import Row
from agspec.errors import MissingExtraError
from agspec.replay.plan import PlannedCall
from agspec.settings import Settings
from agspec.tokens import EMPTY, Tokenizer, Tokens


@dataclass(frozen=True, eq=False)
class Step:
    """A request after a step: ``sequence`` int32 [n] is prompt and output so far, newest last.

    The last ``num_new`` tokens came in this step; at most ``room`` tokens may be drafted.
    """

    request: str
    sequence: Tokens
    num_new: int
    room: int


class Method(Protocol):
    """A drafting method, teacher-forced.

    ``start`` a call under a request's name, ``propose`` after each step for all requests in flight (their drafts come
    back in the same order, int32 [n]), ``finish`` the request when its call is over.
    """

    @property
    def counts(self) -> Counts | None: ...

    def start(self, request: str, call: PlannedCall) -> None: ...
    def propose(self, steps: Sequence[Step]) -> list[Tokens]: ...
    def finish(self, request: str) -> None: ...


class NoDraft:
    """One token a step."""

    counts: Counts | None = None

    def start(self, request: str, call: PlannedCall) -> None:
        """See ``Method``."""

    def propose(self, steps: Sequence[Step]) -> list[Tokens]:
        """Nothing."""
        return [EMPTY] * len(steps)

    def finish(self, request: str) -> None:
        """See ``Method``."""


@jit
def longest_ngram(tokens, shortest, longest):
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

    def propose(self, steps: Sequence[Step]) -> list[Tokens]:
        """See ``Method``."""
        return [self._draft(step) for step in steps]

    def finish(self, request: str) -> None:
        """See ``Method``."""

    def _draft(self, step: Step) -> Tokens:
        s = self._settings
        place = int(longest_ngram(step.sequence, s.ngram_min, s.ngram_max))
        return step.sequence[place : place + min(s.ngram_length, step.room)] if place else EMPTY


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

    def start(self, request: str, call: PlannedCall) -> None:
        """See ``Method``."""
        self._cache.start_request(request, call.prompt)

    def propose(self, steps: Sequence[Step]) -> list[Tokens]:
        """See ``Method``."""
        return [self._draft(step) for step in steps]

    def finish(self, request: str) -> None:
        """See ``Method``."""
        self._cache.stop_request(request)

    def _draft(self, step: Step) -> Tokens:
        s = self._settings
        self._cache.add_active_response(step.request, step.sequence[step.sequence.size - step.num_new :])
        found = self._cache.speculate(
            step.request,
            step.sequence[-s.suffix_depth :],
            max_spec_tokens=min(s.suffix_depth, step.room),
            max_spec_factor=s.suffix_factor,
            min_token_prob=s.suffix_min_prob,
        )
        return np.asarray(found.token_ids, np.int32)


class Sam:
    """SAM-Decoding's policy alone (arXiv 2411.10666): one request's text, longest match, most recent, fixed length."""

    counts: Counts | None = None

    def __init__(self, settings: Settings) -> None:
        self._length = settings.sam_length
        self._requests: dict[str, tuple[SamLookup, SamDocument]] = {}

    def start(self, request: str, call: PlannedCall) -> None:
        """See ``Method``."""
        lookup = SamLookup(64 << 20)
        document = lookup.open()
        lookup.extend(document, np.ascontiguousarray(call.prompt))
        self._requests[request] = (lookup, document)

    def propose(self, steps: Sequence[Step]) -> list[Tokens]:
        """See ``Method``."""
        return [self._draft(step) for step in steps]

    def finish(self, request: str) -> None:
        """See ``Method``."""
        del self._requests[request]

    def _draft(self, step: Step) -> Tokens:
        lookup, document = self._requests[step.request]
        sequence = step.sequence
        lookup.extend(document, np.ascontiguousarray(sequence[sequence.size - step.num_new :]))
        place = lookup.latest(sequence[-MAX_CONTEXT:])
        return EMPTY if place is None else sequence[place + 1 : place + 1 + min(self._length, step.room)]


class Agspec:
    """agspec's drafter, the object that the engine drives."""

    def __init__(self, settings: Settings, tokenizer: Tokenizer, *, odds: OddsState | None = None) -> None:
        self.drafter: Drafter = build_drafter(settings, tokenizer, odds=odds)

    @property
    def counts(self) -> Counts:
        """The drafter's own counts."""
        return self.drafter.counts

    def start(self, request: str, call: PlannedCall) -> None:
        """See ``Method``."""
        for file in call.files:
            self.drafter.open_file("", file.key, file.forms)
        self.drafter.start(request, call.prompt, session=call.session, role=call.role)

    def propose(self, steps: Sequence[Step]) -> list[Tokens]:
        """See ``Method``."""
        drafts = self.drafter.propose([_row(step) for step in steps])
        return [EMPTY if draft is None else draft.tokens for draft in drafts]

    def finish(self, request: str) -> None:
        """See ``Method``."""
        self.drafter.finish(request)


class Oracle(Agspec):
    """The bound on agspec's policy: its stores' best candidate each step, drafted exactly as far as it is right.

    It knows the call's tape. The end of the turn is left to the step itself, since agspec drafts none.
    """

    def __init__(self, settings: Settings, tokenizer: Tokenizer) -> None:
        super().__init__(settings, tokenizer)
        self._calls: dict[str, PlannedCall] = {}

    def start(self, request: str, call: PlannedCall) -> None:
        """See ``Method``."""
        self._calls[request] = call
        super().start(request, call)

    def propose(self, steps: Sequence[Step]) -> list[Tokens]:
        """See ``Method``."""
        rows = [_row(step) for step in steps]
        self.drafter.intake.take_in()
        self.drafter.observe_step(rows)
        for row in rows:
            self.drafter.observe(row)
        drafts = [self._draft(step, row) for step, row in zip(steps, rows, strict=True)]
        self.drafter.intake.begin()
        return drafts

    def finish(self, request: str) -> None:
        """See ``Method``."""
        super().finish(request)
        del self._calls[request]

    def _draft(self, step: Step, row: Row) -> Tokens:
        call = self._calls[step.request]
        coming = call.tape[step.sequence.size - call.prompt.size : -1]
        right = [
            (common_prefix(candidate.tokens, coming), name, candidate)
            for name, candidate in self.drafter.candidates(row)
        ]
        n, name, candidate = max(right, key=lambda found: found[0], default=(0, None, None))
        if name is None or candidate is None or not n:
            return EMPTY
        return self.drafter.force(row, name, candidate.tokens[:n]).tokens


def _row(step: Step) -> Row:
    return Row(step.request, step.sequence[-max(MAX_CONTEXT, step.num_new) :], step.num_new, step.room)


MethodFactory = Callable[[Settings, Tokenizer], Method]

METHODS: dict[str, MethodFactory] = {
    "none": lambda settings, tokenizer: NoDraft(),
    "ngram": lambda settings, tokenizer: Ngram(settings),
    "suffix": lambda settings, tokenizer: Suffix(settings),
    "sam": lambda settings, tokenizer: Sam(settings),
    "agspec": lambda settings, tokenizer: Agspec(settings.with_lookup("sam"), tokenizer),
    "agspec-suffix": lambda settings, tokenizer: Agspec(settings.with_lookup("suffix-tree"), tokenizer),
    "oracle": lambda settings, tokenizer: Oracle(settings.with_lookup("sam"), tokenizer),
}
COST_AWARE = ("agspec", "agspec-suffix")
"""Methods that make use of the cost they are told, and are replayed once for each."""
