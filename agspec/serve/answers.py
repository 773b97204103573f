"""Responses of the four APIs, read for what the model said and whether it said it to the end.

A response is JSON, or a stream of server-sent events whose pieces are put together again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from agspec.messages import Message, ToolCall, anthropic_messages, call_of, joined, response_item

ENDED = ("completed", "incomplete")
"""Status of a response that has all it will have; one in the background is queued or in progress."""


@dataclass
class Answer:
    """What came back: one message a choice. ``complete``: the response ended as it should."""

    messages: list[Message] = field(default_factory=list)
    complete: bool = False


def read_answer(path: str, content: bytes, *, streamed: bool) -> Answer:
    """The answer in a response to a POST to ``path``; what cannot be read is an incomplete one."""
    whole, stream = _READERS[path]
    try:
        if streamed:
            return stream(list(events(content)))
        body = orjson.loads(content)
        return Answer(list(whole(body)), complete=body.get("status", "completed") in ENDED)
    except (ValueError, TypeError, KeyError, AttributeError):
        return Answer()


def events(content: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of a stream, in order; its end marker is ``{"done": True}``."""
    for line in content.split(b"\n"):
        data = line.strip()
        if not data.startswith(b"data:"):
            continue
        data = data[5:].strip()
        if data == b"[DONE]":
            yield {"done": True}
        elif data.startswith(b"{"):
            yield orjson.loads(data)


@dataclass
class _Piece:
    """A message that comes in pieces."""

    text: list[str] = field(default_factory=list)
    calls: dict[int, tuple[list[str], list[str]]] = field(default_factory=dict)

    def call(self, index: int, name: str | None, arguments: str | None) -> None:
        names, pieces = self.calls.setdefault(index, ([], []))
        names.append(name or "")
        pieces.append(arguments or "")

    @property
    def message(self) -> Message:
        calls = tuple(ToolCall(name="".join(n), arguments="".join(a)) for _, (n, a) in sorted(self.calls.items()))
        return Message(role="assistant", content="".join(self.text), tool_calls=calls)


def _answer(pieces: dict[int, _Piece], *, complete: bool) -> Answer:
    return Answer([piece.message for _, piece in sorted(pieces.items())], complete)


def _chat(body: dict[str, Any]) -> Iterator[Message]:
    for choice in body["choices"]:
        message = choice["message"]
        calls = tuple(call_of(call["function"]) for call in message.get("tool_calls") or ())
        yield Message(role="assistant", content=message.get("content") or "", tool_calls=calls)


def _choices_stream(stream: Iterable[dict[str, Any]]) -> Answer:
    """Of chat completions (``delta``), or of completions (``text``)."""
    pieces: dict[int, _Piece] = {}
    complete = False
    for event in stream:
        if "error" in event:
            return _answer(pieces, complete=False)
        complete |= bool(event.get("done"))
        for choice in event.get("choices") or ():
            piece, delta = pieces.setdefault(choice["index"], _Piece()), choice.get("delta") or {}
            piece.text.append(delta.get("content") or choice.get("text") or "")
            for call in delta.get("tool_calls") or ():
                function = call.get("function") or {}
                piece.call(call["index"], function.get("name"), function.get("arguments"))
            if choice.get("finish_reason") in ("abort", "error"):
                return _answer(pieces, complete=False)
    return _answer(pieces, complete=complete)


def _completions(body: dict[str, Any]) -> Iterator[Message]:
    for choice in body["choices"]:
        yield Message(role="assistant", content=choice["text"])


def _responses(body: dict[str, Any]) -> Iterator[Message]:
    yield joined(message for item in body["output"] if (message := response_item(item)) is not None)


def _responses_stream(stream: Iterable[dict[str, Any]]) -> Answer:
    for event in stream:
        if event.get("type") == "response.completed":
            return Answer(list(_responses(event["response"])), complete=True)
    return Answer()


def _anthropic(body: dict[str, Any]) -> Iterator[Message]:
    yield from anthropic_messages("assistant", body["content"])


def _anthropic_stream(stream: Iterable[dict[str, Any]]) -> Answer:
    piece, complete = _Piece(), False
    for event in stream:
        kind = event.get("type")
        complete |= kind == "message_stop"
        if kind == "content_block_start" and event["content_block"].get("type") == "tool_use":
            piece.call(event["index"], event["content_block"].get("name"), None)
        elif kind == "content_block_delta":
            delta = event["delta"]
            piece.text.append(delta.get("text") or "")
            if "partial_json" in delta:
                piece.call(event["index"], None, delta["partial_json"])
    return _answer({0: piece}, complete=complete)


_Reader = Callable[[dict[str, Any]], Iterator[Message]]
_StreamReader = Callable[[Iterable[dict[str, Any]]], Answer]
_READERS: dict[str, tuple[_Reader, _StreamReader]] = {
    "/v1/chat/completions": (_chat, _choices_stream),
    "/v1/completions": (_completions, _choices_stream),
    "/v1/responses": (_responses, _responses_stream),
    "/v1/messages": (_anthropic, _anthropic_stream),
}
"""How a whole response and a stream are read."""
