"""Completion alone, in front of any server of OpenAI's completions: ``agspec fim serve``."""

from __future__ import annotations

import time

import httpx

from agspec.serve.fim.backend import HttpBackend
from agspec.serve.fim.routes import PATHS, FimRoutes
from agspec.serve.middleware import Receive, Scope, Send, respond


class Alone:
    """ASGI app. ``/health`` asks the backend, so that a proxy before a dead one is not healthy."""

    def __init__(self, routes: FimRoutes, backend: HttpBackend) -> None:
        self._routes = routes
        self._backend = backend

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            return
        path, method = scope["path"], scope["method"]
        if path in PATHS and method == "POST":
            await self._routes(scope, receive, send)
        elif path == "/v1/models":
            told = {"id": self._backend.model, "object": "model", "created": int(time.time()), "owned_by": "agspec"}
            await respond(200, {"object": "list", "data": [told]}, send)
        elif path == "/health":
            await self._health(send)
        else:
            known = ", ".join(sorted(PATHS))
            await respond(404, {"error": {"message": f"want a POST to one of {known}, got {method} {path}"}}, send)

    async def _health(self, send: Send) -> None:
        try:
            await self._backend.ask("/v1/models")
        except httpx.HTTPError as error:
            reason = f"{self._backend.url}: want a server, got: {error or type(error).__name__}"
            await respond(503, {"error": {"message": reason}}, send)
        else:
            await respond(200, {"status": "ok"}, send)
