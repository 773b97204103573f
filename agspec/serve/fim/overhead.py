"""What the completion server itself costs a request: the routes as they are, in front of an engine that is always idle.

That engine answers at once with the text it is told, a token at a time; prompt, window, other files, stopping, cleaning
and events are the server's own work. CPU time is that of one request after the other; wall time that of all editors at
once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

import orjson

from agspec.fim.vocabulary import FimVocabulary
from agspec.serve.fim.backend import Wanted, Written
from agspec.serve.fim.family import family_from
from agspec.serve.fim.forced import FAMILY
from agspec.serve.fim.routes import FimRoutes
from agspec.serve.fim.service import FimService
from agspec.serve.fim.typist import PATH, Page
from agspec.tokens import Tokenizer


class Idle:
    """A backend that writes ``text`` at once."""

    model = "idle"
    max_model_len = 8192
    text = ""

    async def write(self, wanted: Wanted) -> AsyncGenerator[Written, None]:
        """See ``Backend``."""
        for at in range(0, len(self.text), 4):
            await asyncio.sleep(0)
            yield Written(self.text[at : at + 4], 1, 0)


def overhead(editors: list[Page], tokenizer: Tokenizer, *, requests: int = 40) -> dict[str, list[float]]:
    """Milliseconds, ``requests`` an editor: ``cpu_ms`` and ``wall_ms``. The first request of each is left out."""
    family = family_from(str(FAMILY), tokenizer.spec, Idle.model)
    backend = Idle()
    routes = FimRoutes(FimService(backend, family, FimVocabulary(tokenizer, family)), models=())
    places = [list(page.typed())[: requests + 1] for page in editors]

    async def alone() -> list[float]:
        found = []
        for turn in range(requests + 1):
            for number, page in enumerate(editors):
                at = places[number][turn]
                backend.text = page.wanted(at)
                content = orjson.dumps(page.body(at, str(number)))
                began = time.process_time()
                await _ask(routes, content)
                if turn:
                    found.append(1000 * (time.process_time() - began))
        return found

    async def together() -> list[float]:
        async def one(number: int, page: Page) -> list[float]:
            found = []
            for at in places[number]:
                content = orjson.dumps(page.body(at, str(number)))
                began = time.perf_counter()
                await _ask(routes, content)
                found.append(1000 * (time.perf_counter() - began))
            return found[1:]

        backend.text = "return found"
        found = await asyncio.gather(*map(one, range(len(editors)), editors))
        return [ms for times in found for ms in times]

    return {"cpu_ms": asyncio.run(alone()), "wall_ms": asyncio.run(together())}


async def _ask(routes: FimRoutes, content: bytes) -> None:
    """One request; raises RuntimeError where it is not answered with 200."""
    scope = {"type": "http", "method": "POST", "path": PATH, "headers": [], "query_string": b""}
    waiting = asyncio.Event()
    messages = iter([{"type": "http.request", "body": content}])

    async def receive() -> Any:
        for message in messages:
            return message
        await waiting.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message.get("status", 200) != 200:
            raise RuntimeError(f"want 200, got {message['status']}")

    await routes(scope, receive, send)
