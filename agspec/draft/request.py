"""What a step's rows bring to the drafter, what it keeps of each request, and what it offers for one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from agspec.draft.addresses import address
from agspec.draft.align import ABSENT, Aligner
from agspec.draft.counts import Draft
from agspec.draft.desk import ASKS, EXPECTED, FORESEEN, TEXT, Desk
from agspec.draft.panel import NUM_SOURCES, Panel
from agspec.draft.store import Session, Store, Tenant
from agspec.tokens import Tokens


@dataclass(frozen=True)
class Row:
    """One request in one step.

    ``context``: its last tokens, the new ones included, int32 [n]; not changed later. ``num_new``: how many came since
    the last step. ``room``: most tokens that may be drafted.
    """

    request: str
    context: Tokens
    num_new: int
    room: int


@dataclass(eq=False)
class Request:
    """A request in flight.

    ``role_number``: of its row in the odds. ``document``: the output's, in the session's store. ``sources``: slots and
    stores asked. ``aligner`` follows the request's own text, ``expected`` what the client expects the output to be.
    ``desk``: what compiled code is told.
    """

    session: Session
    role: str
    role_number: int
    prompt: Tokens
    document: Any
    sources: list[tuple[int, Store]]
    aligner: Aligner | None
    expected: Aligner | None = None
    output: list[int] = field(default_factory=list)
    pending: Draft | None = None
    panel: Panel = field(default_factory=Panel)
    _num_foreseen: tuple[int, int] = (0, 0)
    _num_expected: int = 0
    _unmade: list[Store] | None = None

    def __post_init__(self) -> None:
        self.desk = Desk(self.panel, self.session.tenant.odds, self.role_number)
        self._follow(TEXT, self.aligner)
        self._follow(EXPECTED, self.expected)

    def expect(self, output: Tokens) -> None:
        """The client expects ``output``."""
        self.expected, self._num_expected = Aligner.expecting(output), int(output.size)
        self.expected.extend(np.asarray(self.output, np.int32))
        self._follow(EXPECTED, self.expected)

    def reserve(self, number: int) -> None:
        """Make room for ``number`` more tokens in the texts that are followed."""
        for which, aligner in ((TEXT, self.aligner), (EXPECTED, self.expected)):
            if aligner is not None and aligner.reserve(number):
                self._follow(which, aligner)

    def ask(self, context: Tokens, terms: tuple[float, ...]) -> None:
        """Tell compiled code what to look up after ``context``, in the stores there are now."""
        if self._unmade is None or any(store.lookup is not None for store in self._unmade):
            self._unmade = [store for _, store in self.sources if store.lookup is None]
            told = [
                (source, address(parts))
                for source, store in self.sources
                if store.lookup is not None and (parts := store.lookup.parts) is not None
            ]
            self.desk.tell(np.array(told, np.int64).reshape(-1, 2))
            asks = [source for source, store in self.sources if store.lookup is not None]
            asks += [NUM_SOURCES - 1] if self.aligner is not None else []
            self.desk.numbers[ASKS] = sum(1 << source for source in asks)
        self.desk.ask(context, terms)

    def verified(self, *, drafted: int, accepted: int) -> None:
        """Count what became of the draft that was pending."""
        if self.pending is not None and self.pending.source == "aligned" and self.desk.numbers[FORESEEN]:
            self._num_foreseen = self._num_foreseen[0] + drafted, self._num_foreseen[1] + accepted
        self.pending = None

    @property
    def num_foreseen(self) -> tuple[int, int]:
        """Of the tokens in ``expected``, how many were drafted, and accepted; one drafted again counts once."""
        drafted, accepted = self._num_foreseen
        return min(drafted, self._num_expected), min(accepted, self._num_expected)

    def _follow(self, which: int, aligner: Aligner | None) -> None:
        self.desk.follow(which, ABSENT if aligner is None else aligner.text)


@dataclass(frozen=True)
class Ended:
    """What a request leaves: its ``output``, the ``tail`` of its prompt, which the output goes on after, and counts."""

    tenant: Tenant
    output: Tokens
    tail: Tokens
    num_foreseen: tuple[int, int] = (0, 0)


class Offer(NamedTuple):
    """What one row would draft: of the candidate in slot ``source`` the first ``size`` tokens; ``rated``: by merit."""

    request: Request
    source: int
    size: int
    rated: bool
