"""Tenants and sessions by name, and which go when there are too many."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from agspec.draft.lookup import LookupFactory
from agspec.draft.odds import Odds, OddsState
from agspec.draft.store import Budgets, Intake, Session, Store, Tenant


class Registry:
    """Tenants and their sessions; the longest unused go first, never those with a request in flight."""

    def __init__(self, lookup: LookupFactory, budgets: Budgets, intake: Intake, odds: OddsState | None) -> None:
        self._make = lookup
        self._budgets = budgets
        self._intake = intake
        self._odds = odds
        self.tenants: OrderedDict[str, Tenant] = OrderedDict()
        self.sessions: OrderedDict[tuple[str, str], Session] = OrderedDict()

    def tenant(self, name: str, *, busy: Iterable[Session] = ()) -> Tenant:
        """The tenant of that name, made on first use; ``busy``: sessions with a request in flight."""
        tenant = self.tenants.get(name)
        if tenant is None:
            tenant = Tenant(
                name,
                workspace=Store("workspace", self._make, self._budgets.workspace),
                shared=Store("shared", self._make, self._budgets.shared),
                odds=Odds(self._odds),
            )
            self.tenants[name] = tenant
        self.tenants.move_to_end(name)
        in_use = {id(session.tenant) for session in busy}
        idle = [key for key, other in self.tenants.items() if id(other) not in in_use and other is not tenant]
        for key in idle[: max(0, len(self.tenants) - self._budgets.tenants)]:
            gone = self.tenants.pop(key)
            for session in [session for session in self.sessions if session[0] == key]:
                self.drop(session)
            self._intake.drop(gone.workspace)
            self._intake.drop(gone.shared)
        return tenant

    def session(self, tenant: str, name: str, *, busy: Iterable[Session] = ()) -> Session:
        """The tenant's session of that name, made on first use."""
        busy = list(busy)
        home = self.tenant(tenant, busy=busy)
        session = self.sessions.get((tenant, name))
        if session is None:
            session = Session(Store("session", self._make, self._budgets.session), home)
            self.sessions[tenant, name] = session
        self.sessions.move_to_end((tenant, name))
        in_use = {id(other) for other in busy}
        idle = [key for key, other in self.sessions.items() if id(other) not in in_use and other is not session]
        for key in idle[: max(0, len(self.sessions) - self._budgets.sessions)]:
            self.drop(key)
        return session

    def sizes(self) -> dict[str, dict[str, int]]:
        """Bytes reserved and tokens evicted, by kind of store; sessions that are over are not counted."""
        stores = [
            *(session.store for session in self.sessions.values()),
            *(store for tenant in self.tenants.values() for store in (tenant.workspace, tenant.shared)),
        ]
        found: dict[str, dict[str, int]] = {}
        for store in stores:
            row = found.setdefault(store.name, {"memory_bytes": 0, "num_evicted_tokens": 0})
            if store.lookup is not None:
                row["memory_bytes"] += store.lookup.memory_bytes
                row["num_evicted_tokens"] += store.lookup.num_evicted_tokens
        return found

    def drop(self, key: tuple[str, str]) -> None:
        """Forget a session (tenant, name) and what is still on its way into its store."""
        self._intake.drop(self.sessions.pop(key).store)
