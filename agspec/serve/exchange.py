"""A request on its way, and who made it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agspec.messages import Message, dicts, string
from agspec.replay.trace import Call, Output
from agspec.scaffold import Match, Profiles
from agspec.serve.bodies import Asked, read
from agspec.serve.sessions import Session, Sessions
from agspec.serve.speaker import SessionFields, session_named


@dataclass(frozen=True)
class Exchange:
    """``body`` as it goes on, ``key``: the request's name for the engine; ``predicted``: it says what it expects.

    ``link``: how the session was found.
    """

    path: str
    body: bytes
    session: Session
    asked: Asked
    match: Match
    model: str | None
    tools: tuple[dict[str, Any], ...]
    link: str
    key: str = ""
    predicted: bool = False

    def call(self, answer: Message) -> Call:
        """The exchange as a trace's call."""
        return Call(
            session=self.session.name,
            messages=self.asked.messages,
            output=Output(content=answer.content, tool_calls=answer.tool_calls),
            role=self.match.role,
            model=self.model,
            scaffold=self.match.scaffold.name,
            tools=self.tools,
        )


class Reader:
    """Tells who sent a request: agent and role by ``profiles``, the session among ``sessions``.

    ``scaffold``: the one agent there is, or "auto".
    """

    def __init__(self, profiles: Profiles, sessions: Sessions, scaffold: str = "auto") -> None:
        self._profiles = profiles
        self._fields = SessionFields(profiles)
        self._sessions = sessions
        self._scaffold = scaffold

    def exchange(
        self, path: str, headers: Mapping[str, str], content: bytes, body: dict[str, Any], *, tenant: str
    ) -> Exchange:
        """The exchange that begins with ``body``, read from ``content``; raises BadRequest."""
        asked = read(path, body)
        match = self._match(asked, headers)
        session, link = self._sessions.find(tenant, asked, named=session_named(headers, body, self._fields))
        tools = tuple(dicts(body.get("tools")))
        return Exchange(path, content, session, asked, match, string(body.get("model")) or None, tools, link)

    def _match(self, asked: Asked, headers: Mapping[str, str]) -> Match:
        match = self._profiles.classify(asked.messages, tools=asked.tools, headers=headers)
        if self._scaffold in ("auto", match.scaffold.name):
            return match
        scaffold = self._profiles.get(self._scaffold)
        return Match(scaffold, scaffold.profile.role, scaffold.profile.emits)
