"""The decision: look up all sources, choose one continuation a row, and of all rows the tokens that pay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from agspec.draft.align import Aligner
from agspec.draft.budget import Budget, best
from agspec.draft.caps import MAX_DRAFT, CapTable
from agspec.draft.cost import StepCost
from agspec.draft.counts import Counts, Draft
from agspec.draft.kernels import MAX_CONTEXT, jit
from agspec.draft.lookup import Candidate, Found, Lookup, LookupFactory
from agspec.draft.names import PART_NAMES, SOURCE_NAMES, STORE_NAMES, PartName, SourceName, StoreName
from agspec.draft.odds import ROLES, OddsState
from agspec.draft.panel import NUM_SOURCES, Panel
from agspec.draft.regions import Regions
from agspec.draft.registry import Registry
from agspec.draft.request import Ended, Offer, Request, Row
from agspec.draft.store import Budgets, Intake, Session, Store
from agspec.messages import Role
from agspec.tokens import Tokens

HEADER = 24
"""Tokens of the prompt's end that an output's document starts with: the chat frame before the first word."""
RAW_FLOOR = 0.02
"""Product of a store's own chances at which its candidate ends; the odds cut it shorter."""
ROLE_NUMBERS = {role: number for number, role in enumerate(Role.__args__[: ROLES - 1])}  # type: ignore[attr-defined]


@jit
def legal(tokens, n, allowed):
    """How many of the first ``n`` of ``tokens`` come before one that is not ``allowed`` (bool [vocabulary])."""
    for k in range(n):
        if not 0 <= tokens[k] < allowed.size or not allowed[tokens[k]]:
            return k
    return n


class Drafter:
    """Drafts for the rows of a step, from the stores of each row's session and tenant.

    ``lookup``: makes the engine behind each store. ``cost``: what a step costs. ``corpus``: a frozen lookup all tenants
    may read. ``barred``: token ids a draft never holds nor passes (sorted). ``odds``: where the tenants' models start.
    ``regions``: tells what is being written; None: not told. ``enabled``: stores in use; ``parts``: parts of the policy
    in use.

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
    ) -> None:
        self.caps = caps
        self.budget = Budget(cost) if caps.caution is None else Budget(cost, caution=caps.caution)
        self._allowed = np.ones(vocab_size, np.bool_)
        self._allowed[barred[barred < vocab_size]] = False
        self._regions = regions
        self._enabled = tuple(enabled)
        self._parts = tuple(parts)
        self._corpus = Store("corpus", lookup, 0)
        self._corpus.lookup = corpus
        self.intake = Intake(budgets.tokens_per_step)
        self.homes = Registry(lookup, budgets, self.intake, odds)
        self._requests: dict[str, Request] = {}
        self._chances = np.zeros((NUM_SOURCES, MAX_DRAFT))
        self._kept = np.zeros(NUM_SOURCES, np.int64)
        self._merits = np.zeros(MAX_DRAFT)
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
        aligner = Aligner(prompt) if "aligned" in self._parts else None
        document = home.store.open(prompt[-HEADER:])
        sources = [(STORE_NAMES.index(name), *self._store(name, home, document)) for name in self._enabled]
        self._requests[request] = Request(home, role, prompt, document, sources, aligner)

    def remember(self, session: str, text: Tokens, *, tenant: str = "") -> None:
        """Text of a session that its requests do not carry, such as what was cut from a long prompt."""
        self.intake.wait()
        self._read(self._session(tenant, session), text)

    def expect(self, request: str, output: Tokens) -> None:
        """What the client expects a request's output to be, or much of it: followed through edits."""
        self.intake.wait()
        state = self._requests.get(request)
        if state is not None and output.size:
            state.expected = Aligner.expecting(output)
            state.expected.extend(np.asarray(state.output, np.int32))

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
        ended = Ended(state.session.tenant, output, state.prompt[-HEADER:].copy())
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
        drafts = self.commit([self.offer(row, len(rows)) for row in rows])
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
        state.session.store.extend(state.document, new)
        for aligner in (state.expected, state.aligner):
            if aligner is not None:
                aligner.extend(new)
        if self._regions is not None:
            self._regions.advance(new, state.region)
        right = state.session.tenant.odds.learn(state.panel, new)
        run = 0 if right < new.size else min(state.fared // 3 + 1, 3)
        state.fared = 3 * run + min(right, 2)
        state.panel.clear()
        if state.pending is not None:
            drafted = int(state.pending.tokens.size)
            accepted = min(row.num_new - 1, drafted)
            self.counts.add(state.pending, accepted)
            state.session.controller(state.role).observe(drafted=drafted, accepted=accepted)
            state.pending = None

    def offer(self, row: Row, num_rows: int) -> Offer | None:
        """What one of ``num_rows`` rows would draft, None where nothing is worth verifying."""
        state = self._requests.get(row.request)
        if state is None or row.room < 1 or not row.context.size:
            return None
        multiplier = state.session.controller(state.role).step() if "multiplier" in self._parts else 1.0
        if multiplier == 0.0:
            return None
        limits = self.caps.limits(state.role)
        limit = self._look_up(state, row, limits.cap)
        share = self.budget.share(num_rows)
        fixed = limits.floor is not None
        floor = self.budget.floor(share, num_rows) if limits.floor is None else limits.floor
        panel = state.panel
        state.session.tenant.odds.judge(panel, floor=min(floor, RAW_FLOOR), chances=self._chances, kept=self._kept)
        choice, n = best(self._chances, self._kept, share, self.budget.rate, fixed, floor, self._merits)
        if choice < 0:
            return None
        match_length = int(panel.lengths[choice])
        longest = min(limit, int(self.caps.longest(state.role, match_length) * multiplier))
        n = legal(panel.tokens[choice], min(n, longest), self._allowed)
        if not n:
            return None
        tokens = panel.tokens[choice, :n].copy()
        merits = None if fixed or "batch" not in self._parts else self._merits[:n].copy()
        chances = self._chances[choice, :n].copy()
        return Offer(row.request, SOURCE_NAMES[choice], tokens, match_length, chances, merits)

    def commit(self, offers: Sequence[Offer | None]) -> list[Draft | None]:
        """The drafts of a step: of all rows' offers the tokens that pay together."""
        rated = [i for i, offer in enumerate(offers) if offer is not None and offer.merits is not None]
        lengths = {i: offer.tokens.size for i, offer in enumerate(offers) if offer is not None}
        if rated:
            paid = self.budget.afford([offers[i].merits for i in rated], rows=len(offers))  # type: ignore[union-attr,misc]
            lengths.update(zip(rated, paid, strict=True))
        return [None if offer is None else self._draft(offer, lengths[i]) for i, offer in enumerate(offers)]

    def candidates(self, row: Row) -> list[tuple[SourceName, Candidate]]:
        """What every source proposes for ``row``, unjudged: for an oracle that knows what comes."""
        state = self._requests[row.request]
        self._look_up(state, row, self.caps.limits(state.role).cap)
        return state.panel.candidates()

    def force(self, row: Row, source: SourceName, tokens: Tokens) -> Draft:
        """Draft ``tokens`` for ``row``, whatever they are worth."""
        state = self._requests[row.request]
        state.pending = Draft(tokens, source, 0, np.ones(tokens.size), state.role)
        return state.pending

    def _look_up(self, state: Request, row: Row, cap: int) -> int:
        context = np.ascontiguousarray(row.context[-MAX_CONTEXT:])
        limit = min(row.room, cap, MAX_DRAFT)
        panel = state.panel
        panel.clear()
        if limit < 1:
            return 0
        panel.moment[:] = (
            context[-1], context[-2] if context.size > 1 else -1, state.fared, ROLE_NUMBERS.get(state.role, ROLES - 1)
        )  # fmt: skip
        for source, store, document in state.sources:
            if store.lookup is not None:
                found = store.lookup.fill(context, panel.slots[source], limit=limit, floor=RAW_FLOOR, document=document)
                self._note(panel, source, found)
        if state.aligner is not None and "session" in self._enabled:
            found = (0, 0) if state.expected is None else state.expected.fill(panel.slots[-1], limit)
            found = found if found[0] else state.aligner.fill(panel.slots[-1], limit)
            self._note(panel, NUM_SOURCES - 1, found)
        if self._regions is not None:
            self._regions.tell(panel, state.region)
        return limit

    def _note(self, panel: Panel, source: int, found: Found) -> None:
        self.counts.num_lookups[SOURCE_NAMES[source]] += 1
        if found[0]:
            self.counts.num_hits[SOURCE_NAMES[source]] += 1
            panel.put(source, *found)

    def _draft(self, offer: Offer, length: int) -> Draft | None:
        if not length:
            return None
        state = self._requests[offer.request]
        tokens, chances = offer.tokens[:length], offer.chances[:length]
        state.pending = Draft(tokens, offer.source, offer.match_length, chances, state.role)
        return state.pending

    def _read(self, home: Session, text: Tokens) -> None:
        for start, end in home.novelty.spans(text):
            self.intake.add(home.store, text[start:end].copy(), tail=text[max(0, start - HEADER) : start].copy())

    def _store(self, name: StoreName, home: Session, document: Any) -> tuple[Store, Any]:
        if name == "session":
            return home.store, document
        return {"workspace": home.tenant.workspace, "shared": home.tenant.shared, "corpus": self._corpus}[name], None

    def _busy(self) -> list[Session]:
        return [state.session for state in self._requests.values()]

    def _session(self, tenant: str, name: str) -> Session:
        return self.homes.session(tenant, name, busy=self._busy())
