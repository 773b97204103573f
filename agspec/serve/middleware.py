"""Pure ASGI middleware around vLLM's routes: names session, tenant and role of each request, listens to the answer.

It stands inside vLLM's authentication, so that a refused request leaves no trace. Streams are handed on chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import orjson

from agspec.serve.bodies import ROUTES, BadRequest
from agspec.serve.hub import Hub

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_ANSWER = 8 << 20
"""Bytes of a response that are kept to be read; a longer one is handed on all the same."""


class Middleware:
    """``hub_of`` finds the hub in the ASGI scope; None while there is none yet."""

    def __init__(self, app: App, hub_of: Callable[[Scope], Hub | None]) -> None:
        self._app = app
        self._hub_of = hub_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        hub = None
        if scope["type"] == "http" and scope["method"] == "POST":
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            hub = self._hub_of(scope) if path in ROUTES else None
        if hub is None:
            await self._app(scope, receive, send)
            return
        content = await _body(receive)
        if content is None:
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            exchange = hub.receive(path, headers, content)
        except BadRequest as error:
            await _refuse(error, send)
            return
        if exchange is None:
            await self._app(scope, _again(content, receive), send)
            return
        length = (b"content-length", str(len(exchange.body)).encode())
        scope = {**scope, "headers": [*(h for h in scope["headers"] if h[0].lower() != length[0]), length]}
        heard = _Heard(send)
        try:
            await self._app(scope, _again(exchange.body, receive), heard)
        finally:
            hub.answered(
                exchange, b"".join(heard.pieces), status=heard.status, streamed=heard.streamed, whole=heard.whole
            )


async def _refuse(error: BadRequest, send: Send) -> None:
    """A 400 in the shape of OpenAI's."""
    told = {"message": str(error), "type": "BadRequestError", "param": error.field, "code": 400}
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps({"error": told})})


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
            kinds = [value for name, value in message.get("headers", ()) if name.lower() == b"content-type"]
            self.streamed = any(kind.startswith(b"text/event-stream") for kind in kinds)
        elif message["type"] == "http.response.body":
            piece = message.get("body", b"")
            self._size += len(piece)
            if self._size <= LARGEST_ANSWER:
                self.pieces.append(piece)
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.whole = self._size <= LARGEST_ANSWER


async def _body(receive: Receive) -> bytes | None:
    pieces = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


def _again(content: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever the connection brings: a client that leaves is still noticed."""
    waiting = [content]

    async def again() -> MutableMapping[str, Any]:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again
