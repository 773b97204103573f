"""Messages as agents send them: what trace records, scaffold profiles and the server share."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Role = Literal[
    "coder", "planner", "architect", "editor", "executor", "reviewer", "summarizer", "committer", "chat", "fim", "other"
]
"""The closed list of roles."""


class Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolCall(Record):
    """A tool call: ``arguments`` is the JSON text as recorded."""

    name: str
    arguments: str


class Message(Record):
    """One prompt message; content parts are joined to one text."""

    role: str
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
