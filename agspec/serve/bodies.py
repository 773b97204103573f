"""Requests of the four APIs, read for who is speaking and what was opened.

Lenient: what is odd is left out, for vLLM is the one that judges whether a request is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from agspec.messages import Message, ToolCall


@dataclass(frozen=True)
class Asked:
    """What a request says: its messages, oldest first, and the names of its tools."""

    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()


def read(path: str, body: dict[str, Any]) -> Asked:
    """The request that a POST of ``body`` to ``path``, one of ROUTES, makes."""
    return Asked(tuple(ROUTES[path](body)), tuple(_tool_names(body.get("tools"))))


def text_of(content: Any) -> str:
    """Content as one text: text, or a list of parts of which those with text count.

    >>> text_of([{"type": "text", "text": "a"}, {"type": "image_url"}, "b"])
    'ab'
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return "".join(part for part in parts if isinstance(part, str))


def _chat(body: dict[str, Any]) -> Iterator[Message]:
    for message in _dicts(body.get("messages")):
        calls = tuple(_function(call.get("function")) for call in _dicts(message.get("tool_calls")))
        yield Message(role=_text(message.get("role")), content=text_of(message.get("content")), tool_calls=calls)


def _completions(body: dict[str, Any]) -> Iterator[Message]:
    prompt = body.get("prompt")
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], str):
        prompt = prompt[0]
    if isinstance(prompt, str):
        yield Message(role="user", content=prompt)


def _responses(body: dict[str, Any]) -> Iterator[Message]:
    if instructions := _text(body.get("instructions")):
        yield Message(role="system", content=instructions)
    asked = body.get("input")
    if isinstance(asked, str):
        yield Message(role="user", content=asked)
    for item in _dicts(asked):
        kind = item.get("type", "message")
        if kind == "message":
            yield Message(role=_text(item.get("role")), content=text_of(item.get("content")))
        elif kind in ("function_call", "custom_tool_call"):
            yield Message(role="assistant", tool_calls=(_function(item),))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield Message(role="tool", content=text_of(item.get("output")))


def _anthropic(body: dict[str, Any]) -> Iterator[Message]:
    if system := text_of(body.get("system")):
        yield Message(role="system", content=system)
    for message in _dicts(body.get("messages")):
        yield from anthropic_message(_text(message.get("role")), message.get("content"))


def anthropic_message(role: str, content: Any) -> Iterator[Message]:
    """A message of blocks: each tool result is a message of its own, ahead of the text that came with it."""
    blocks = _dicts(content)
    for block in blocks:
        if block.get("type") == "tool_result":
            yield Message(role="tool", content=text_of(block.get("content")))
    calls = tuple(_function(block) for block in blocks if block.get("type") == "tool_use")
    said = content if isinstance(content, str) else text_of([b for b in blocks if b.get("type") == "text"])
    if said or calls:
        yield Message(role=role, content=said, tool_calls=calls)


ROUTES: dict[str, Callable[[dict[str, Any]], Iterator[Message]]] = {
    "/v1/chat/completions": _chat,
    "/v1/completions": _completions,
    "/v1/responses": _responses,
    "/v1/messages": _anthropic,
}


def _function(function: Any) -> ToolCall:
    """A call, whichever of the three APIs' names its arguments go by."""
    function = function if isinstance(function, dict) else {}
    arguments = next((function[key] for key in ("arguments", "input") if key in function), "")
    if not isinstance(arguments, str):
        arguments = orjson.dumps(arguments).decode()
    return ToolCall(name=_text(function.get("name")), arguments=arguments)


def _tool_names(tools: Any) -> Iterator[str]:
    for tool in _dicts(tools):
        function = tool.get("function")
        name = (function if isinstance(function, dict) else tool).get("name")
        if isinstance(name, str):
            yield name


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
