"""Requests of the four APIs, read for who is speaking and what was opened.

Lenient: what is odd is left out, for vLLM is the one that judges whether a request is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from agspec.errors import AgspecError
from agspec.messages import (
    Message,
    anthropic_messages,
    call_of,
    dicts,
    digest,
    response_item,
    string,
    text_of,
    tool_name,
)


@dataclass(frozen=True)
class Asked:
    """What a request says: its messages, oldest first, and the names of its tools."""

    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()

    @cached_property
    def digests(self) -> tuple[bytes, ...]:
        """A hash of what each message says: who, what, and the calls."""
        return tuple(digest(message.role, message.content, *calls_of(message)) for message in self.messages)


def calls_of(message: Message) -> Iterator[str]:
    """Names and arguments of a message's calls; arguments as JSON that is written one way, for clients rewrite it."""
    for call in message.tool_calls:
        yield call.name
        try:
            yield orjson.dumps(orjson.loads(call.arguments), option=orjson.OPT_SORT_KEYS).decode()
        except (ValueError, TypeError, RecursionError):
            yield call.arguments


class BadRequest(AgspecError):
    """A field of a request that is not what it has to be."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field


def read(path: str, body: dict[str, Any]) -> Asked:
    """The request that a POST of ``body`` to ``path``, one of ROUTES, makes."""
    return Asked(
        tuple(ROUTES[path](body)), tuple(name for tool in dicts(body.get("tools")) if (name := tool_name(tool)))
    )


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
    for message in dicts(body.get("messages")):
        calls = tuple(call_of(call.get("function")) for call in dicts(message.get("tool_calls")))
        yield Message(role=string(message.get("role")), content=text_of(message.get("content")), tool_calls=calls)


def _completions(body: dict[str, Any]) -> Iterator[Message]:
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if isinstance(prompt, str):
        yield Message(role="user", content=prompt)


def _responses(body: dict[str, Any]) -> Iterator[Message]:
    if instructions := string(body.get("instructions")):
        yield Message(role="system", content=instructions)
    asked = body.get("input")
    if isinstance(asked, str):
        yield Message(role="user", content=asked)
    for item in dicts(asked):
        if (message := response_item(item)) is not None:
            yield message


def _anthropic(body: dict[str, Any]) -> Iterator[Message]:
    if system := text_of(body.get("system")):
        yield Message(role="system", content=system)
    for message in dicts(body.get("messages")):
        yield from anthropic_messages(string(message.get("role")), message.get("content"))


CHAT = "/v1/chat/completions"
ROUTES: dict[str, Callable[[dict[str, Any]], Iterator[Message]]] = {
    CHAT: _chat,
    "/v1/completions": _completions,
    "/v1/responses": _responses,
    "/v1/messages": _anthropic,
}
