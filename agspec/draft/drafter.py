"""The decision: look up all stores, choose one continuation, cap it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agspec.draft.caps import MAX_DRAFT, CapTable
from agspec.draft.counts import Counts, Draft
from agspec.draft.kernels import MAX_CONTEXT
from agspec.draft.lookup import Candidate, Lookup, LookupFactory
from agspec.draft.novel import common_prefix
from agspec.draft.pace import Pace
from agspec.draft.store import STORE_NAMES, Budgets, Intake, Session, Store, StoreName, Tenant
from agspec.tokens import Tokens

HEADER = 24
"""Tokens of the prompt's end that an output's document starts with: the chat frame before the first word."""


RAW_FLOOR = 0.02
"""Product of a store's own chances at which its candidate ends; the odds cut it shorter."""


@dataclass(frozen=True)
class Row:
    """One request in one step.

    ``context``: its last tokens, the new ones included, int32 [n]. ``num_new``: how many came since the last step.
    ``room``: most tokens that may be drafted.
    """

    request: str
    context: Tokens
    num_new: int
    room: int


@dataclass(eq=False)
class _Request:
    session: Session
    role: str
    prompt: Tokens
    document: Any
    output: list[int] = field(default_factory=list)
    pending: Draft | None = None
    judged: list[tuple[int, Candidate]] = field(default_factory=list)
    before: int = 0
    fared: int = 0


class Drafter:
    """Drafts for the rows of a step, from the stores of each row's session and tenant.

    ``lookup``: makes the engine behind each store. ``cost_ratio``: what one more verified token costs over a step's
    fixed cost. ``corpus``: a frozen lookup all tenants may read. ``barred``: token ids a draft never holds nor passes
    (sorted). ``enabled``: stores in use.

    Call ``start`` when a request begins, ``propose`` each step with its rows, ``finish`` when it ends. Same calls,
    same drafts: no clock, no randomness, no order of a hash table decides anything.
    """

    def __init__(
        self,
        *,
        lookup: LookupFactory,
        caps: CapTable,
        budgets: Budgets,
        cost_ratio: float,
        barred: Tokens,
        vocab_size: int,
        corpus: Lookup | None = None,
        enabled: Sequence[StoreName] = STORE_NAMES,
    ) -> None:
        self._make = lookup
        self.caps = caps
        self._budgets = budgets
        self._cost_ratio = cost_ratio
        self._barred = frozenset(int(token) for token in barred)
        self._vocab_size = vocab_size
        self._enabled = tuple(enabled)
        self._corpus = Store("corpus", lookup, 0)
        self._corpus.lookup = corpus
        self._tenants: OrderedDict[str, Tenant] = OrderedDict()
        self._sessions: OrderedDict[tuple[str, str], Session] = OrderedDict()
        self._requests: dict[str, _Request] = {}
        self.intake = Intake(budgets.tokens_per_step)
        self.counts = Counts()

    def __contains__(self, request: str) -> bool:
        return request in self._requests

    @property
    def requests(self) -> list[str]:
        """Requests in flight, oldest first."""
        return list(self._requests)

    def start(
        self, request: str, prompt: Tokens, *, session: str | None = None, tenant: str = "", role: str = "other"
    ) -> None:
        """A request begins. Without a session it is one of its own, forgotten at its end but for its output."""
        home = self._session(tenant, f"\0{request}" if session is None else session)
        self._read(home, prompt)
        document = home.store.open(prompt[-HEADER:])
        self._requests[request] = _Request(home, role, prompt, document)

    def remember(self, session: str, text: Tokens, *, tenant: str = "") -> None:
        """Text of a session that its requests do not carry, such as what was cut from a long prompt."""
        self._read(self._session(tenant, session), text)

    def open_file(self, tenant: str, key: object, forms: Sequence[Tokens]) -> None:
        """A file the agent opened, in its emission forms; a ``key`` (path and content) seen before is skipped."""
        home = self._tenant(tenant)
        if not home.is_new(key):
            return
        for tokens in forms:
            self.intake.add(home.workspace, tokens)

    def finish(self, request: str) -> None:
        """A request has ended: its output goes to the tenant's other sessions."""
        state = self._requests.pop(request, None)
        if state is None:
            return
        output = np.asarray(state.output, np.int32)
        state.session.novelty.remember(state.prompt, output)
        self.intake.add(state.session.tenant.shared, output, tail=state.prompt[-HEADER:].copy())
        for key in [k for k, s in self._sessions.items() if s is state.session and k[1] == f"\0{request}"]:
            self._drop(key)

    def close_session(self, session: str, *, tenant: str = "") -> None:
        """A session is over: its store goes."""
        if (tenant, session) in self._sessions:
            self._drop((tenant, session))

    def propose(self, rows: Sequence[Row]) -> list[Draft | None]:
        """One step: learn what was accepted, take in what waits, draft for each row. Unknown requests get None."""
        for row in rows:
            self.observe(row)
        self.intake.step()
        return [self.draft(row) for row in rows]

    def observe(self, row: Row) -> None:
        """Take in a row's new tokens, and what they say of its last draft."""
        state = self._requests.get(row.request)
        if state is None or not row.num_new:
            return
        new = row.context[-row.num_new :]
        state.output.extend(new.tolist())
        state.session.store.extend(state.document, np.ascontiguousarray(new))
        self._learn(state, np.ascontiguousarray(new))
        num_draft = 0 if state.pending is None else int(state.pending.tokens.size)
        state.session.tenant.pace.observe(num_new=row.num_new, num_draft=num_draft)
        if state.pending is not None:
            drafted = state.pending.tokens
            accepted = min(row.num_new - 1, int(drafted.size))
            self.counts.add(state.pending, accepted)
            state.session.controller(state.role).observe(drafted=int(drafted.size), accepted=accepted)
            state.pending = None

    def draft(self, row: Row) -> Draft | None:
        """The draft for one row, None where nothing is worth verifying."""
        state = self._requests.get(row.request)
        if state is None or row.room < 1 or not row.context.size:
            return None
        multiplier = state.session.controller(state.role).step()
        if multiplier == 0.0:
            return None
        limits = self.caps.limits(state.role)
        tenant = state.session.tenant
        floor = tenant.pace.floor if limits.floor is None else limits.floor
        limit = min(row.room, limits.cap, MAX_DRAFT)
        best: Candidate | None = None
        source: StoreName = "session"
        for name, raw in self.candidates(row):
            number = STORE_NAMES.index(name)
            found = tenant.odds.judge(raw, store=number, fared=state.fared, before=state.before, floor=floor)
            if best is None or found.expected > best.expected:
                best, source = found, name
        if best is None:
            return None
        longest = int(self.caps.longest(state.role, best.match_length) * multiplier)
        tokens = self._legal(best.tokens[: min(longest, limit)])
        if not tokens.size:
            return None
        expected = float(np.cumprod(best.probs[: tokens.size]).sum())
        state.pending = Draft(tokens, source, best.match_length, expected, state.role)
        return state.pending

    def candidates(self, row: Row) -> list[tuple[StoreName, Candidate]]:
        """What each store knows to go on with after a row's context, before any is chosen or cut."""
        state = self._requests.get(row.request)
        if state is None or row.room < 1 or not row.context.size:
            return []
        state.before = int(row.context[-1])
        state.judged = []
        context = np.ascontiguousarray(row.context[-MAX_CONTEXT:])
        limit = min(row.room, self.caps.limits(state.role).cap, MAX_DRAFT)
        found: list[tuple[StoreName, Candidate]] = []
        for store, document in self._stores(state):
            self.counts.num_lookups[store.name] += 1
            raw = store.draft(context, limit=limit, floor=RAW_FLOOR, document=document)
            if raw is not None:
                self.counts.num_hits[store.name] += 1
                state.judged.append((STORE_NAMES.index(store.name), raw))
                found.append((store.name, raw))
        return found

    def force(self, row: Row, source: StoreName, tokens: Tokens) -> Draft:
        """Draft ``tokens`` int32 [n] of ``source`` for a row in flight, whatever they promise."""
        state = self._requests[row.request]
        legal = self._legal(tokens)
        state.pending = Draft(legal, source, 0, float(legal.size), state.role)
        return state.pending

    def _read(self, home: Session, text: Tokens) -> None:
        for start, end in home.novelty.spans(text):
            self.intake.add(home.store, text[start:end].copy(), tail=text[max(0, start - HEADER) : start].copy())

    def _learn(self, state: _Request, came: Tokens) -> None:
        odds = state.session.tenant.odds
        best = 0
        for number, candidate in state.judged:
            odds.learn(candidate, came, store=number, fared=state.fared, before=state.before)
            best = max(best, common_prefix(candidate.tokens, came))
        run = 0 if best < came.size else min(state.fared // 3 + 1, 3)
        state.fared = 3 * run + min(best, 2)
        state.judged = []

    def _stores(self, state: _Request) -> list[tuple[Store, Any]]:
        tenant = state.session.tenant
        every = {
            "session": (state.session.store, state.document),
            "workspace": (tenant.workspace, None),
            "shared": (tenant.shared, None),
            "corpus": (self._corpus, None),
        }
        return [every[name] for name in self._enabled if every[name][0].lookup is not None]

    def _legal(self, tokens: Tokens) -> Tokens:
        for i, token in enumerate(tokens.tolist()):
            if token in self._barred or not 0 <= token < self._vocab_size:
                return tokens[:i]
        return tokens

    def _tenant(self, name: str) -> Tenant:
        tenant = self._tenants.get(name)
        if tenant is None:
            tenant = Tenant(
                workspace=Store("workspace", self._make, self._budgets.workspace),
                shared=Store("shared", self._make, self._budgets.shared),
                pace=Pace(self._cost_ratio),
            )
            self._tenants[name] = tenant
        self._tenants.move_to_end(name)
        busy = {id(state.session.tenant) for state in self._requests.values()}
        idle = [key for key, other in self._tenants.items() if id(other) not in busy and other is not tenant]
        for key in idle[: max(0, len(self._tenants) - self._budgets.tenants)]:
            gone = self._tenants.pop(key)
            for session in [session for session in self._sessions if session[0] == key]:
                self._drop(session)
            self.intake.drop(gone.workspace)
            self.intake.drop(gone.shared)
        return tenant

    def _session(self, tenant: str, name: str) -> Session:
        home = self._tenant(tenant)
        session = self._sessions.get((tenant, name))
        if session is None:
            session = Session(Store("session", self._make, self._budgets.session), home)
            self._sessions[tenant, name] = session
        self._sessions.move_to_end((tenant, name))
        busy = {id(state.session) for state in self._requests.values()}
        idle = [key for key, other in self._sessions.items() if id(other) not in busy and other is not session]
        for key in idle[: max(0, len(self._sessions) - self._budgets.sessions)]:
            self._drop(key)
        return session

    def _drop(self, key: tuple[str, str]) -> None:
        self.intake.drop(self._sessions.pop(key).store)
