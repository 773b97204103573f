"""Which session a request belongs to: the one it names, else the one its content continues.

Most agents send no id, but all of them send what was said before. Evidence, strongest first: an earlier request whole
at the beginning of this one; an assistant message that is an answer of ours; a late answer whole in another message
(an editor that gets the architect's plan, a commit message asked for an edit); lines that only one session's answers
hold (a condenser). System messages do not count: they hold dates and billing lines, and all sessions of an agent share
them.

A wrong link costs speed only. Nothing is ever linked across tenants.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal
from uuid import uuid4

from agspec.latest import Latest
from agspec.messages import Message, digest
from agspec.serve.bodies import Asked, calls_of

Method = Literal["named", "prefix", "answer", "quote", "lines", "new"]
"""How a request was linked."""

SHORTEST_ANSWER = 16
"""Characters from which an answer tells a session: "Ok." does not."""
LATE_ANSWERS = 64
"""Of one tenant, that are searched for in a request."""
SHORTEST_LINE = 24
ENOUGH_LINES = 2
"""Lines of one session's answers that a request must hold to be linked by them."""
MOST_HASHES = {"requests": 1 << 16, "answers": 1 << 16, "lines": 1 << 18}
"""Of one tenant, the latest. Lines are hashed by this process's own hash, the fastest: nobody else sees it."""
TEXT_SEEN = 1 << 17
"""Characters of a request, its latest, that are searched for lines."""


@dataclass
class Session:
    """One session as the server sees it; times as its clock tells them."""

    name: str
    tenant: str
    began: float
    last: float
    num_requests: int = 0
    scaffold: str = ""
    roles: Counter[str] = field(default_factory=Counter)
    links: Counter[str] = field(default_factory=Counter)
    over: bool = False


class _Owners:
    """Hashes and the live session each belongs to, the latest ``most`` of them."""

    def __init__(self, most: int) -> None:
        self._owners: Latest[bytes | int, Session | None] = Latest(most)

    def __len__(self) -> int:
        return len(self._owners)

    def get(self, key: bytes | int) -> Session | None:
        """The owner, if it has one and is not over."""
        owner = self._owners.get(key)
        return None if owner is None or owner.over else owner

    def give(self, key: bytes | int, session: Session) -> None:
        """``session`` is the owner."""
        self._owners[key] = session

    def claim(self, key: bytes | int, session: Session) -> None:
        """``session`` is the owner, unless another one is: then nobody is."""
        owner = self._owners.get(key, session)
        free = owner is not None and (owner is session or owner.over)
        self._owners[key] = session if free else None


@dataclass
class _Index:
    """Of one tenant: its sessions, and what tells them."""

    sessions: dict[str, Session] = field(default_factory=dict)
    requests: _Owners = field(default_factory=lambda: _Owners(MOST_HASHES["requests"]))
    answers: _Owners = field(default_factory=lambda: _Owners(MOST_HASHES["answers"]))
    lines: _Owners = field(default_factory=lambda: _Owners(MOST_HASHES["lines"]))
    late: deque[tuple[str, Session]] = field(default_factory=lambda: deque(maxlen=LATE_ANSWERS))


class Sessions:
    """All live sessions. ``max_age_s``: unused that long, a session is over; of more than ``most``, the longest unused.

    ``ended`` is told of each that is over.
    """

    def __init__(
        self,
        *,
        max_age_s: float,
        clock: Callable[[], float],
        most: int = 1024,
        ended: Callable[[Session], object] = lambda _: None,
    ) -> None:
        self._max_age_s = max_age_s
        self._most = most
        self._by_use: OrderedDict[tuple[str, str], Session] = OrderedDict()
        self._clock = clock
        self._ended = ended
        self._tenants: dict[str, _Index] = {}

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._by_use.values()))

    def find(self, tenant: str, asked: Asked, *, named: str | None = None) -> tuple[Session, Method]:
        """The session of a request and how it was told; the request is remembered as that session's."""
        self._expire()
        index = self._tenants.setdefault(tenant, _Index())
        chain = list(_chain(asked))
        session, method = self._link(index, tenant, asked, chain, named)
        session.last = self._clock()
        self._by_use[tenant, session.name] = session
        self._by_use.move_to_end((tenant, session.name))
        session.num_requests += 1
        session.links[method] += 1
        if chain:
            index.requests.give(chain[-1], session)
        return session, method

    def answered(self, session: Session, answers: Iterable[Message]) -> None:
        """What the model said to a request of ``session``."""
        index = self._tenants.get(session.tenant)
        if index is None or session.over:
            return
        for answer in answers:
            if (key := _answer_key(answer)) is not None:
                index.answers.give(key, session)
            if len(said := answer.content.strip()) >= SHORTEST_ANSWER:
                index.late.append((said, session))
            for line in _lines(answer):
                index.lines.claim(line, session)

    def get(self, tenant: str, name: str) -> Session | None:
        """A session by its name."""
        index = self._tenants.get(tenant)
        return None if index is None else index.sessions.get(name)

    def end(self, session: Session) -> None:
        """A session is over."""
        if session.over:
            return
        session.over = True
        del self._by_use[session.tenant, session.name]
        index = self._tenants[session.tenant]
        del index.sessions[session.name]
        if not index.sessions:
            del self._tenants[session.tenant]
        self._ended(session)

    def _link(
        self, index: _Index, tenant: str, asked: Asked, chain: list[bytes], named: str | None
    ) -> tuple[Session, Method]:
        if named is not None:
            return index.sessions.get(named) or self._open(index, tenant, named), "named"
        for key in reversed(chain):
            if (found := index.requests.get(key)) is not None:
                return found, "prefix"
        for message in reversed(asked.messages):
            key_of = _answer_key(message) if message.role == "assistant" else None
            if key_of is not None and (found := index.answers.get(key_of)) is not None:
                return found, "answer"
        if index.late and (found := _by_quote(index, asked)) is not None:
            return found, "quote"
        if index.lines and (found := _by_lines(index, asked)) is not None:
            return found, "lines"
        return self._open(index, tenant, f"linked-{uuid4().hex[:12]}"), "new"

    def _open(self, index: _Index, tenant: str, name: str) -> Session:
        now = self._clock()
        session = index.sessions[name] = Session(name, tenant, now, now)
        return session

    def _expire(self) -> None:
        oldest = self._clock() - self._max_age_s
        while self._by_use:
            session = next(iter(self._by_use.values()))
            if session.last >= oldest and len(self._by_use) < self._most:
                return
            self.end(session)


def _chain(asked: Asked) -> Iterator[bytes]:
    """A hash for each beginning of the request, system messages left out."""
    chain = blake2b(digest_size=12)
    for message, said in zip(asked.messages, asked.digests, strict=True):
        if message.role not in ("system", "developer"):
            chain.update(said)
            yield chain.digest()


def _answer_key(message: Message) -> bytes | None:
    said = message.content.strip()
    calls = list(calls_of(message))
    return digest(said, *calls) if calls or len(said) >= SHORTEST_ANSWER else None


def _lines(message: Message) -> Iterator[int]:
    for text in (message.content, *(call.arguments for call in message.tool_calls)):
        yield from _lines_of(text)


def _lines_of(text: str) -> Iterator[int]:
    for line in text.splitlines():
        if len(line := line.strip()) >= SHORTEST_LINE:
            yield hash(line)


def _by_quote(index: _Index, asked: Asked) -> Session | None:
    texts = list(_searched(asked))
    owners = {
        session.name: session
        for said, session in index.late
        if not session.over and any(said in text for text in texts)
    }
    return next(iter(owners.values())) if len(owners) == 1 else None


def _by_lines(index: _Index, asked: Asked) -> Session | None:
    votes: Counter[str] = Counter()
    for text in _searched(asked):
        for line in dict.fromkeys(_lines_of(text)):
            owner = index.lines.get(line)
            if owner is not None:
                votes[owner.name] += 1
    for name, number in votes.most_common(1):
        if number >= ENOUGH_LINES:
            return index.sessions[name]
    return None


def _searched(asked: Asked) -> Iterator[str]:
    """Texts that may quote an answer, latest first, up to TEXT_SEEN characters of them."""
    room = TEXT_SEEN
    for message in reversed(asked.messages):
        if message.role not in ("system", "developer", "assistant") and room > 0:
            yield message.content[-room:]
            room -= len(message.content)
