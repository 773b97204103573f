"""Requests of the four APIs, read for who is speaking and what was opened.

Lenient: what is odd is left out, for vLLM is the one that judges whether a request is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from agspec.errors import AgspecError
from agspec.messages import Message, anthropic_messages, call_of, response_item, text_of


@dataclass(frozen=True)
class Asked:
    """What a request says: its messages, oldest first, and the names of its tools."""

    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()


class BadRequest(AgspecError):
    """A field of a request that is not what it has to be."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field


def read(path: str, body: dict[str, Any]) -> Asked:
    """The request that a POST of ``body`` to ``path``, one of ROUTES, makes."""
    return Asked(tuple(ROUTES[path](body)), tuple(_tool_names(body.get("tools"))))


def predicted(body: dict[str, Any]) -> str | None:
    """The text of ``prediction``, OpenAI's parameter for an output known in part; None where there is none.

    Raises BadRequest where it is not ``{"type": "content", "content": text or parts of text}``.
    """
    prediction = body.get("prediction")
    if prediction is None:
        return None
    if not isinstance(prediction, dict) or prediction.get("type") != "content":
        raise BadRequest("prediction", f'want {{"type": "content", "content": ...}}, got {_kind(prediction)}')
    content = prediction.get("content")
    texts: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else part
        if not isinstance(text, str):
            raise BadRequest("prediction.content", f"want text or a list of text parts, got {_kind(part)}")
        texts.append(text)
    return "".join(texts)


def _kind(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    return f"type {kind[:40]!r}" if isinstance(kind, str) else type(value).__name__


def _chat(body: dict[str, Any]) -> Iterator[Message]:
    for message in _dicts(body.get("messages")):
        calls = tuple(call_of(call.get("function")) for call in _dicts(message.get("tool_calls")))
        yield Message(role=_text(message.get("role")), content=text_of(message.get("content")), tool_calls=calls)


def _completions(body: dict[str, Any]) -> Iterator[Message]:
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
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
        if (message := response_item(item)) is not None:
            yield message


def _anthropic(body: dict[str, Any]) -> Iterator[Message]:
    if system := text_of(body.get("system")):
        yield Message(role="system", content=system)
    for message in _dicts(body.get("messages")):
        yield from anthropic_messages(_text(message.get("role")), message.get("content"))


CHAT = "/v1/chat/completions"
ROUTES: dict[str, Callable[[dict[str, Any]], Iterator[Message]]] = {
    CHAT: _chat,
    "/v1/completions": _completions,
    "/v1/responses": _responses,
    "/v1/messages": _anthropic,
}


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
