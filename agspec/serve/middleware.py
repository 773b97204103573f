"""Pure ASGI middleware around vLLM's routes: names session, tenant and role of each request, listens to the answer.

It stands inside vLLM's authentication, so that a refused request leaves no trace. Streams are handed on chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from typing import Any, Protocol

import orjson

from agspec.serve.bodies import ROUTES, BadRequest
from agspec.serve.exchange import Exchange
from agspec.serve.usage import Fate, has_usage, in_response, in_stream

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_ANSWER = 8 << 20
"""Bytes of a response that are kept to be read; a longer one is handed on all the same."""


class Listens(Protocol):
    """Who is told of requests and answers: a Hub, or a Listener."""

    def receive(self, path: str, headers: Mapping[str, str], content: bytes) -> Exchange | None: ...
    def answered(self, exchange: Exchange, content: bytes, *, status: int, streamed: bool, whole: bool) -> None: ...
    async def fate(self, exchange: Exchange) -> Fate | None: ...


class Middleware:
    """``hub_of`` finds who listens in the ASGI scope; None while there is nobody yet.

    ``instead``: (scope, exchange, headers) -> what answers in the app's place, or None. ``apart``: (scope, path, body)
    -> what answers a request that nobody listens to, or None.
    """

    def __init__(
        self,
        app: App,
        hub_of: Callable[[Scope], Listens | None],
        instead: Callable[[Scope, Exchange, Mapping[str, str]], App | None] = lambda *_: None,
        apart: Callable[[Scope, str, bytes], App | None] = lambda *_: None,
    ) -> None:
        self._app = app
        self._hub_of = hub_of
        self._instead = instead
        self._apart = apart

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        hub = None
        if scope["type"] == "http" and scope["method"] == "POST":
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            hub = self._hub_of(scope) if path in ROUTES else None
        if hub is None:
            await self._app(scope, receive, send)
            return
        content = await body_of(receive)
        if content is None:
            return
        apart = self._apart(scope, path, content)
        if apart is not None:
            await apart(scope, again(content, receive), send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            exchange = hub.receive(path, headers, content)
        except BadRequest as error:
            await refuse(error.field, str(error), send)
            return
        if exchange is None:
            await self._app(scope, again(content, receive), send)
            return
        scope = carrying(scope, exchange.body)
        heard = _Heard(_Amended(send, partial(hub.fate, exchange)) if exchange.predicted else send)
        try:
            app = self._instead(scope, exchange, headers) or self._app
            await app(scope, again(exchange.body, receive), heard)
        finally:
            hub.answered(
                exchange, b"".join(heard.pieces), status=heard.status, streamed=heard.streamed, whole=heard.whole
            )


async def refuse(field: str, reason: str, send: Send) -> None:
    """A 400 in the shape of OpenAI's."""
    told = {"message": reason, "type": "BadRequestError", "param": field, "code": 400}
    await respond(400, {"error": told}, send)


async def respond(status: int, body: dict[str, Any], send: Send) -> None:
    """A whole answer in JSON."""
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps(body)})


def carrying(start: MutableMapping[str, Any], content: bytes) -> MutableMapping[str, Any]:
    """A request's scope, or the start of a response, with the length of another body."""
    headers = [pair for pair in start.get("headers", ()) if pair[0].lower() != b"content-length"]
    return {**start, "headers": [*headers, (b"content-length", str(len(content)).encode())]}


class _Amended:
    """Hands messages on, and puts into their usage what became of the request's prediction."""

    def __init__(self, send: Send, fate: Callable[[], Awaitable[Fate | None]]) -> None:
        self._send = send
        self._fate = fate
        self._start: MutableMapping[str, Any] | None = None
        self._pieces: list[bytes] = []

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200 and not _is_stream(message):
            self._start = message
        elif message["type"] == "http.response.body" and self._start is not None:
            self._pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                await self._whole(self._start, b"".join(self._pieces))
        else:
            piece = message.get("body", b"")
            if has_usage(piece) and (fate := await self._fate()) is not None:
                message = {**message, "body": in_stream(piece, fate)}
            await self._send(message)

    async def _whole(self, start: MutableMapping[str, Any], content: bytes) -> None:
        fate = await self._fate()
        content = content if fate is None else in_response(content, fate)
        await self._send(carrying(start, content))
        await self._send({"type": "http.response.body", "body": content})


def _is_stream(start: MutableMapping[str, Any]) -> bool:
    kinds = [value for name, value in start.get("headers", ()) if name.lower() == b"content-type"]
    return any(kind.startswith(b"text/event-stream") for kind in kinds)


class _Heard:
    """Hands messages on and keeps what the response says."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._size = 0
        self.pieces: list[bytes] = []
        self.status = 0
        self.streamed = False
        self.whole = False

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.streamed = _is_stream(message)
        elif message["type"] == "http.response.body":
            piece = message.get("body", b"")
            self._size += len(piece)
            if self._size <= LARGEST_ANSWER:
                self.pieces.append(piece)
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.whole = self._size <= LARGEST_ANSWER


async def body_of(receive: Receive) -> bytes | None:
    """A request's body; None where the client has left."""
    pieces = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


def again(content: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever the connection brings: a client that leaves is still noticed."""
    waiting = [content]

    async def again() -> MutableMapping[str, Any]:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again
