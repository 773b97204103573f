"""The decision: look up all sources, choose one continuation a row, and of all rows the tokens that pay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agspec.draft import offering
from agspec.draft.align import Aligner
from agspec.draft.budget import Budget
from agspec.draft.caps import MAX_DRAFT, CapTable
from agspec.draft.cost import StepCost
from agspec.draft.counts import Counts, Draft
from agspec.draft.desk import LIMIT
from agspec.draft.lookup import Candidate, Lookup, LookupFactory
from agspec.draft.names import PART_NAMES, SOURCE_NAMES, STORE_NAMES, PartName, SourceName, StoreName
from agspec.draft.odds import ROLES, OddsState
from agspec.draft.offering import RAW_FLOOR
from agspec.draft.regions import Regions
from agspec.draft.registry import Registry
from agspec.draft.request import Ended, Offer, Request, Row
from agspec.draft.store import Budgets, Intake, Session, Store
from agspec.draft.team import Team
from agspec.messages import Role
from agspec.tokens import Tokens

HEADER = 24
"""Tokens of the prompt's end that an output's document starts with: the chat frame before the first word."""
ROLE_NUMBERS = {role: number for number, role in enumerate(Role.__args__[: ROLES - 1])}  # type: ignore[attr-defined]


class Drafter:
    """Drafts for the rows of a step, from the stores of each row's session and tenant.

    ``lookup``: makes the engine behind each store. ``cost``: what a step costs. ``corpus``: a frozen lookup all tenants
    may read. ``barred``: token ids a draft never holds nor passes (sorted). ``odds``: where the tenants' models start.
    ``regions``: tells what is being written; None: not told. ``enabled``: stores in use; ``parts``: parts of the policy
    in use. ``threads`` look up for the rows of a step.

    Call ``start`` when a request begins, ``propose`` each step with its rows, ``finish`` when it ends. Same calls,
    same drafts: no clock, no randomness, no order of a hash table decides anything.
    """

    def __init__(
        self,
        *,
        lookup: LookupFactory,
        caps: CapTable,
        budgets: Budgets,
        cost: StepCost,
        barred: Tokens,
        vocab_size: int,
        corpus: Lookup | None = None,
        odds: OddsState | None = None,
        regions: Regions | None = None,
        enabled: Sequence[StoreName] = STORE_NAMES,
        parts: Sequence[PartName] = PART_NAMES,
        threads: int = 1,
    ) -> None:
        self.caps = caps
        self.budget = Budget(cost) if caps.caution is None else Budget(cost, caution=caps.caution)
        self._allowed = np.ones(vocab_size, np.bool_)
        self._allowed[barred[barred < vocab_size]] = False
        self._regions = Regions([], []) if regions is None else regions
        self._enabled = tuple(enabled)
        self._parts = tuple(parts)
        self._corpus = Store("corpus", lookup, 0)
        self._corpus.lookup = corpus
        self.intake = Intake(budgets.tokens_per_step)
        self._team = Team(threads)
        self.homes = Registry(lookup, budgets, self.intake, odds)
        self._requests: dict[str, Request] = {}
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
        self.intake.wait()
        home = self._session(tenant, f"\0{request}" if session is None else session)
        self._read(home, prompt)
        aligner = Aligner(prompt) if "aligned" in self._parts and "session" in self._enabled else None
        document = home.store.open(prompt[-HEADER:])
        sources = [(STORE_NAMES.index(name), self._store(name, home)) for name in self._enabled]
        number = ROLE_NUMBERS.get(role, ROLES - 1)
        self._requests[request] = Request(home, role, number, prompt, document, sources, aligner)

    def remember(self, session: str, text: Tokens, *, tenant: str = "") -> None:
        """Text of a session that its requests do not carry, such as what was cut from a long prompt."""
        self.intake.wait()
        self._read(self._session(tenant, session), text)

    def expect(self, request: str, output: Tokens) -> None:
        """What the client expects a request's output to be, or much of it: followed through edits."""
        self.intake.wait()
        state = self._requests.get(request)
        if state is not None and state.aligner is not None and output.size:
            state.expect(output)

    def num_foreseen(self, request: str) -> tuple[int, int] | None:
        """Of a request in flight, tokens drafted from what was expected, and of these those accepted."""
        state = self._requests.get(request)
        return None if state is None else state.num_foreseen

    def open_file(self, tenant: str, key: object, forms: Sequence[Tokens]) -> None:
        """A file the agent opened, in its emission forms; a ``key`` (path and content) seen before is skipped."""
        self.intake.wait()
        home = self.homes.tenant(tenant, busy=self._busy())
        if not home.is_new(key):
            return
        for tokens in forms:
            self.intake.add(home.workspace, tokens)

    def finish(self, request: str, *, share: bool = True) -> Ended | None:
        """A request has ended: its output goes to the tenant's other sessions, now or when ``share`` is called."""
        self.intake.wait()
        state = self._requests.pop(request, None)
        if state is None:
            return None
        output = np.asarray(state.output, np.int32)
        state.session.novelty.remember(state.prompt, output)
        ended = Ended(state.session.tenant, output, state.prompt[-HEADER:].copy(), state.num_foreseen)
        if share:
            self.share(ended)
        for key in [k for k, s in self.homes.sessions.items() if s is state.session and k[1] == f"\0{request}"]:
            self.homes.drop(key)
        return ended

    def share(self, ended: Ended) -> None:
        """An output goes to the tenant's other sessions; to nobody where the tenant is gone."""
        self.intake.wait()
        if any(tenant is ended.tenant for tenant in self.homes.tenants.values()):
            self.intake.add(ended.tenant.shared, ended.output, tail=ended.tail)

    def restore(self, tenant: str, documents: Sequence[tuple[Tokens, Tokens]]) -> None:
        """Before the first request: a tenant's outputs of an earlier run, (tail, output) each as of ``Ended``."""
        home = self.homes.tenant(tenant, busy=self._busy())
        for tail, output in documents:
            self.intake.add(home.shared, output, tail=tail)
        self.intake.take_all()

    def close_session(self, session: str, *, tenant: str = "") -> None:
        """A session is over: its store goes."""
        self.intake.wait()
        if (tenant, session) in self.homes.sessions:
            self.homes.drop((tenant, session))

    def propose(self, rows: Sequence[Row]) -> list[Draft | None]:
        """One step: learn what was accepted, draft for each row, take in what waits. Unknown requests get None."""
        self.intake.take_in()
        self.observe_step(rows)
        for row in rows:
            self.observe(row)
        known = sum(row.request in self for row in rows)
        drafts = self.commit(self.answer([self.ask(row, known) for row in rows]), known)
        self.intake.begin()
        return drafts

    def observe_step(self, rows: Sequence[Row]) -> None:
        """What a step of these rows brought, all together: the engine's pace. Goes before the rows' ``observe``."""
        known = [(self._requests[row.request], row.num_new) for row in rows if row.request in self and row.num_new]
        if known:
            drafted = sum(0 if state.pending is None else int(state.pending.tokens.size) for state, _ in known)
            self.budget.observe(rows=len(known), num_new=sum(new for _, new in known), num_draft=drafted)

    def observe(self, row: Row) -> None:
        """Take in a row's new tokens, and what they say of its last draft."""
        state = self._requests.get(row.request)
        if state is None or not row.num_new:
            return
        new = np.ascontiguousarray(row.context[-row.num_new :])
        state.output.extend(new.tolist())
        self.intake.append(state.session.store, state.document, new)
        state.reserve(row.num_new)
        offering.observe(state.desk.numbers, new, self._regions.tables)
        if state.pending is not None:
            drafted = int(state.pending.tokens.size)
            accepted = min(row.num_new - 1, drafted)
            self.counts.add(state.pending, accepted)
            state.session.controller(state.role).observe(drafted=drafted, accepted=accepted)
            state.verified(drafted=drafted, accepted=accepted)

    def ask(self, row: Row, num_rows: int) -> Request | None:
        """Set out what one of ``num_rows`` rows asks; its request, None where nothing is worth verifying."""
        state = self._requests.get(row.request)
        if state is None or row.room < 1 or not row.context.size:
            return None
        multiplier = state.session.controller(state.role).step() if "multiplier" in self._parts else 1.0
        limits = self.caps.limits(state.role)
        limit = min(row.room, limits.cap, MAX_DRAFT)
        if multiplier == 0.0 or limit < 1:
            return None
        share = self.budget.share(num_rows)
        floor = self.budget.floor(share, num_rows) if limits.floor is None else limits.floor
        fixed = limits.floor is not None
        cap = min(limits.cap, MAX_DRAFT)
        terms = (limit, floor, share, self.budget.rate, fixed, limits.factor, limits.offset, cap, multiplier)
        self._ask(state, row.context, terms)
        return state

    def answer(self, asked: Sequence[Request | None]) -> list[Offer | None]:
        """What each row would draft that ``ask`` set out."""
        states = [state for state in asked if state is not None]
        if not states:
            return [None] * len(asked)
        desks = np.array([state.desk.address for state in states], np.int64)
        self._team.run(offering.offer, desks, self._regions.tables, self._allowed)
        offering.count(desks, self.counts.looked)
        return [None if state is None else self._offer(state) for state in asked]

    def commit(self, offers: Sequence[Offer | None], num_rows: int) -> list[Draft | None]:
        """The drafts of a step of ``num_rows`` rows: of all offers the tokens that pay together."""
        rated = [i for i, offer in enumerate(offers) if offer is not None and offer.rated]
        lengths = {i: offer.size for i, offer in enumerate(offers) if offer is not None}
        if rated:
            merits = [offers[i].request.panel.board.merits[: lengths[i]] for i in rated]  # type: ignore[union-attr]
            lengths.update(zip(rated, self.budget.afford(merits, rows=num_rows), strict=True))
        return [None if offer is None else _draft(offer, lengths[i]) for i, offer in enumerate(offers)]

    def candidates(self, row: Row) -> list[tuple[SourceName, Candidate]]:
        """What every source proposes for ``row``, unjudged: for an oracle that knows what comes."""
        state = self._requests[row.request]
        limit = min(row.room, self.caps.limits(state.role).cap, MAX_DRAFT)
        state.panel.clear()
        if limit > 0:
            self._ask(state, row.context, (limit, 0, 0, 0, 0, 0, 0, 0, 0))
            offering.look_up(state.desk.numbers, self._regions.tables)
            offering.count(np.array([state.desk.address]), self.counts.looked)
        return state.panel.candidates()

    def force(self, row: Row, source: SourceName, tokens: Tokens) -> Draft:
        """Draft ``tokens`` for ``row``, whatever they are worth."""
        state = self._requests[row.request]
        state.pending = Draft(tokens, source, 0, np.ones(tokens.size), state.role)
        return state.pending

    def _ask(self, state: Request, context: Tokens, terms: tuple[float, ...]) -> None:
        """Lookups that are not compiled are asked here."""
        state.ask(context, terms)
        for source, store in state.sources:
            if store.lookup is not None and store.lookup.parts is None:
                slot, context = state.panel.slots[source], np.ascontiguousarray(context)
                found = store.lookup.fill(context, slot, limit=int(terms[LIMIT]), floor=RAW_FLOOR)
                state.panel.put(source, *found)

    def _offer(self, state: Request) -> Offer | None:
        source, size = state.desk.answer
        limits = self.caps.limits(state.role)
        return Offer(state, source, size, limits.floor is None and "batch" in self._parts) if size else None

    def _read(self, home: Session, text: Tokens) -> None:
        for start, end in home.novelty.spans(text):
            self.intake.add(home.store, text[start:end].copy(), tail=text[max(0, start - HEADER) : start].copy())

    def _store(self, name: StoreName, home: Session) -> Store:
        if name == "session":
            return home.store
        return {"workspace": home.tenant.workspace, "shared": home.tenant.shared, "corpus": self._corpus}[name]

    def _busy(self) -> list[Session]:
        return [state.session for state in self._requests.values()]

    def _session(self, tenant: str, name: str) -> Session:
        return self.homes.session(tenant, name, busy=self._busy())


def _draft(offer: Offer, size: int) -> Draft | None:
    if not size:
        return None
    state, source = offer.request, offer.source
    board = state.panel.board
    state.pending = Draft(
        board.tokens[source, :size].copy(), SOURCE_NAMES[source], int(board.lengths[source]),
        board.chances[source, :size].copy(), state.role,
    )  # fmt: skip
    return state.pending
