"""The stores, and the ordered queue through which text reaches them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from agspec.draft.controller import Controller
from agspec.draft.lookup import Lookup, LookupFactory
from agspec.draft.names import StoreName
from agspec.draft.novel import Novelty
from agspec.draft.odds import Odds
from agspec.draft.worker import Worker
from agspec.tokens import EMPTY, Tokens


@dataclass(frozen=True)
class Budgets:
    """Bytes each store may take, tokens that go into stores in one step, sessions and tenants kept."""

    session: int = 64 << 20
    workspace: int = 256 << 20
    shared: int = 512 << 20
    tokens_per_step: int = 768
    sessions: int = 128
    tenants: int = 16


class Store:
    """One lookup under a name; made on first use, so that an unused store costs nothing."""

    def __init__(self, name: StoreName, make: LookupFactory, budget: int) -> None:
        self.name = name
        self._make = make
        self._budget = budget
        self.lookup: Lookup | None = None

    def open(self, tail: Tokens = EMPTY) -> Any:
        """A new document; see ``Lookup.open``."""
        if self.lookup is None:
            self.lookup = self._make(self._budget)
        return self.lookup.open(tail)

    def extend(self, document: Any, tokens: Tokens) -> None:
        """Append to a document."""
        if self.lookup is not None:
            self.lookup.extend(document, tokens)


@dataclass(eq=False)
class Tenant:
    """What the sessions of one tenant share, and nobody else sees."""

    name: str
    workspace: Store
    shared: Store
    odds: Odds = field(default_factory=Odds)
    _files: set[object] = field(default_factory=set)
    _num_evicted: int = 0

    def is_new(self, file: object) -> bool:
        """Whether ``file`` is to be taken in; from now on it is not, until something has been evicted."""
        lookup = self.workspace.lookup
        if lookup is not None and lookup.num_evicted_tokens != self._num_evicted:
            self._num_evicted = lookup.num_evicted_tokens
            self._files.clear()
        new = file not in self._files
        self._files.add(file)
        return new


@dataclass(eq=False)
class Session:
    """What belongs to one session and goes with it."""

    store: Store
    tenant: Tenant
    novelty: Novelty = field(default_factory=Novelty)
    controllers: dict[str, Controller] = field(default_factory=dict)

    def controller(self, role: str) -> Controller:
        """The controller of ``role`` in this session."""
        found = self.controllers.get(role)
        if found is None:
            found = self.controllers[role] = Controller()
        return found


@dataclass
class _Append:
    store: Store
    tokens: Tokens
    tail: Tokens
    document: Any = None


FEW = 3
"""Rows of a step whose new tokens are taken in at once: waking a thread for them would take longer."""
MOST_WAITING = 1 << 23
"""Tokens that may wait for all stores together; more is refused and counted, so that no flood of text fills memory."""


class Intake:
    """Texts on their way into stores: in order, so many tokens a step, never by the clock.

    ``begin`` moves them beside the engine's forward pass, in a thread of its own; ``wait`` before anything else touches
    stores or queue. So what a step sees does not depend on how fast the thread was. What a step's rows wrote goes in
    the same way, whole, before the rest: a store lags a step behind.
    """

    def __init__(self, tokens_per_step: int) -> None:
        self.tokens_per_step = tokens_per_step
        self.num_refused_tokens = 0
        self._queue: deque[_Append] = deque()
        self._written: list[tuple[Store, Any, Tokens]] = []
        self._num_waiting = 0
        self._worker: Worker | None = None
        self._running = False
        self._begun = False
        self._error: BaseException | None = None

    def begin(self) -> None:
        """Start a step in the background; ``wait`` ends it."""
        if self._queue or len(self._written) >= FEW:
            self._worker = self._worker or Worker("agspec-intake")
            self._worker.begin(self.step)
            self._running = True
        elif self._written:
            self.step()
            self._begun = True

    def wait(self) -> None:
        """Until the step begun last is done; what it raised, ``take_in`` raises."""
        if self._running and self._worker is not None:
            error = self._worker.wait()
            self._error = self._error or error
            self._running, self._begun = False, True

    def take_in(self) -> None:
        """A step of the engine begins: the one begun last is waited for; where there was none, one is made now."""
        self.wait()
        error, begun = self._error, self._begun
        self._error, self._begun = None, False
        if error is not None:
            raise error
        if not begun:
            self.step()

    def append(self, store: Store, document: Any, tokens: Tokens) -> None:
        """What was written in this step to a document that is open."""
        self._written.append((store, document, tokens))

    def add(self, store: Store, tokens: Tokens, *, tail: Tokens = EMPTY) -> None:
        """A new document of ``store`` that holds ``tokens`` and goes on after ``tail``."""
        if self._num_waiting + tokens.size > MOST_WAITING:
            self.num_refused_tokens += int(tokens.size)
        elif tokens.size:
            self._num_waiting += int(tokens.size)
            self._queue.append(_Append(store, tokens, tail))

    def drop(self, store: Store) -> None:
        """Forget what is still on its way into ``store``."""
        self._queue = deque(entry for entry in self._queue if entry.store is not store)
        self._written = [entry for entry in self._written if entry[0] is not store]
        self._num_waiting = sum(int(entry.tokens.size) for entry in self._queue)

    def take_all(self) -> None:
        """Take in all that waits, now: before the first step."""
        self.wait()
        while self._queue or self._written:
            self.step()

    def step(self) -> int:
        """Move what was written, and up to ``tokens_per_step`` tokens of what waits; how many of these went."""
        written, self._written = self._written, []
        for store, document, tokens in written:
            store.extend(document, tokens)
        left = self.tokens_per_step
        while left and self._queue:
            entry = self._queue[0]
            if entry.document is None:
                entry.document = entry.store.open(entry.tail)
            part, entry.tokens = entry.tokens[:left], entry.tokens[left:]
            self._num_waiting -= int(part.size)
            entry.store.extend(entry.document, part)
            left -= int(part.size)
            if not entry.tokens.size:
                self._queue.popleft()
        return self.tokens_per_step - left

    @property
    def num_waiting_tokens(self) -> int:
        """Tokens not yet in their store."""
        return self._num_waiting
