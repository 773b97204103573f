"""A request on its way, and who made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agspec.messages import Message
from agspec.replay.trace import Call, Output
from agspec.scaffold import Match
from agspec.serve.bodies import Asked
from agspec.serve.sessions import Session


@dataclass(frozen=True)
class Exchange:
    """``body`` as it goes on, ``key``: the request's name for the engine; ``predicted``: it says what it expects."""

    path: str
    body: bytes
    session: Session
    asked: Asked
    match: Match
    model: str | None
    tools: tuple[dict[str, Any], ...]
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
