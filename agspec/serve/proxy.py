"""A proxy that records: requests go on to a server as they come, answers come back, both are kept as a trace.

Any server of the four APIs will do. Sessions and roles are told as ``agspec serve`` tells them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

import httpx
import orjson

from agspec.scaffold import Profiles
from agspec.serve.answers import read_answer
from agspec.serve.exchange import Exchange, Reader
from agspec.serve.leaving import unless_gone
from agspec.serve.middleware import App, Middleware, Receive, Scope, Send, body_of, respond
from agspec.serve.recorder import Recorder
from agspec.serve.sessions import Sessions
from agspec.serve.speaker import tenant_of
from agspec.serve.usage import Fate

log = logging.getLogger("agspec")

HOP = (b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te", b"trailer", b"proxy-authorization")
"""Headers of one connection, which are not handed on."""
SESSION_S = 4 * 3600.0


class Listener:
    """Reads what passes and records whole calls; what it cannot read passes all the same."""

    def __init__(self, recorder: Recorder, profiles: Profiles, clock: Callable[[], float] = time.monotonic) -> None:
        self._recorder = recorder
        self._sessions = Sessions(
            max_age_s=SESSION_S, clock=clock, ended=lambda session: recorder.forget(session.tenant, session.name)
        )
        self._reader = Reader(profiles, self._sessions)
        self.num_recorded = 0

    def receive(self, path: str, headers: Mapping[str, str], content: bytes) -> Exchange | None:
        """See ``Hub.receive``; the body goes on as it came."""
        try:
            body = orjson.loads(content)
            if not isinstance(body, dict):
                return None
            return self._reader.exchange(path, headers, content, body, tenant=tenant_of(headers, share=False))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            log.warning("agspec: a request to %s is not recorded: %s", path, error)
            return None

    def answered(self, exchange: Exchange, content: bytes, *, status: int, streamed: bool, whole: bool) -> None:
        """See ``Hub.answered``."""
        answer = read_answer(exchange.path, content, streamed=streamed) if status == 200 and whole else None
        if answer is None or not answer.complete:
            return
        self._sessions.answered(exchange.session, answer.messages)
        for message in answer.messages if exchange.asked.messages else ():
            self._recorder.add(exchange.session.tenant, exchange.call(message))
            self.num_recorded += 1

    async def fate(self, exchange: Exchange) -> Fate | None:
        """The server behind tells it itself."""
        return None


class Forward:
    """ASGI app: every request goes to ``url`` (without /v1) and the answer comes back piece by piece."""

    def __init__(self, url: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._client = httpx.AsyncClient(base_url=url, timeout=None, transport=transport)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            return
        content = await body_of(receive)
        if content is None:
            return
        left = (*HOP, b"host", b"content-length", b"accept-encoding")
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in left]
        target = httpx.URL(path=scope["path"], query=scope.get("query_string") or None)
        request = self._client.build_request(
            scope["method"], target, content=content, headers=[*headers, (b"accept-encoding", b"identity")]
        )
        await unless_gone(self._pass(request, send), receive)

    async def _pass(self, request: httpx.Request, send: Send) -> None:
        try:
            response = await self._client.send(request, stream=True)
        except httpx.TransportError as error:
            told = {"message": f"want a server at {request.url}, got: {error or type(error).__name__}", "code": 502}
            await respond(502, {"error": told}, send)
            return
        try:
            headers = [(name, value) for name, value in response.headers.raw if name.lower() not in HOP]
            await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
            async for piece in response.aiter_raw():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await response.aclose()


def recording_proxy(url: str, listener: Listener, transport: httpx.AsyncBaseTransport | None = None) -> App:
    """The app."""
    return Middleware(Forward(url.rstrip("/").removesuffix("/v1"), transport), lambda scope: listener)
