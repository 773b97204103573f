"""Messages as agents send them: what trace records, scaffold profiles and the server share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, Literal

import orjson
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


def text_of(content: Any) -> str:
    """Content as one text: text, or a list of parts of which those with text count; anything else is none.

    >>> text_of([{"type": "text", "text": "a"}, {"type": "image_url"}, "b"])
    'ab'
    """
    if isinstance(content, str):
        return content
    parts = (part.get("text") if isinstance(part, dict) else part for part in _list(content))
    return "".join(part for part in parts if isinstance(part, str))


def call_of(function: Any) -> ToolCall:
    """A tool call, by whichever of the APIs' names its arguments go (``arguments``, ``input``); odd ones are empty."""
    function = function if isinstance(function, dict) else {}
    arguments = next((function[key] for key in ("arguments", "input") if key in function), "")
    if not isinstance(arguments, str):
        arguments = orjson.dumps(arguments).decode()
    return ToolCall(name=string(function.get("name")), arguments=arguments)


def tool_name(tool: dict[str, Any]) -> str:
    """A tool definition's name, by whichever of the APIs it is written; odd ones have none."""
    function = tool.get("function")
    return string((function if isinstance(function, dict) else tool).get("name"))


def anthropic_messages(role: str, content: Any) -> Iterator[Message]:
    """A message of Anthropic's blocks: each tool result is a message of its own, ahead of the text that came with it.

    Thinking is left out: it is not sent again.
    """
    blocks = dicts(content)
    for block in blocks:
        if block.get("type") == "tool_result":
            yield Message(role="tool", content=text_of(block.get("content")))
    calls = tuple(call_of(block) for block in blocks if block.get("type") == "tool_use")
    said = content if isinstance(content, str) else text_of([b for b in blocks if b.get("type") == "text"])
    if said or calls:
        yield Message(role=role, content=said, tool_calls=calls)


def response_item(item: dict[str, Any]) -> Message | None:
    """An item of the Responses API's input or output as a message; None for one that says nothing, as reasoning."""
    kind = item.get("type", "message")
    if kind == "message":
        return Message(role=string(item.get("role")), content=text_of(item.get("content")))
    if kind in ("function_call", "custom_tool_call"):
        return Message(role="assistant", tool_calls=(call_of(item),))
    if kind in ("function_call_output", "custom_tool_call_output"):
        output = item.get("output")
        return Message(role="tool", content=text_of(output.get("content") if isinstance(output, dict) else output))
    return None


def joined(messages: Iterable[Message]) -> Message:
    """Neighbouring messages of the model's as the one answer they are."""
    parts = tuple(messages)
    return Message(
        role="assistant",
        content="".join(part.content for part in parts),
        tool_calls=tuple(call for part in parts for call in part.tool_calls),
    )


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; none where it is no list."""
    return [item for item in _list(value) if isinstance(item, dict)]


def string(value: Any) -> str:
    """The text, empty where it is none."""
    return value if isinstance(value, str) else ""


def digest(*texts: str) -> bytes:
    """A hash of texts that is the same in every process."""
    found = blake2b(digest_size=12)
    for text in texts:
        found.update(text.encode("utf-8", "surrogatepass"))
        found.update(b"\0")
    return found.digest()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
