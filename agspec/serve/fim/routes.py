"""The routes, as ASGI apps: inside ``agspec serve`` they stand before vLLM's own, alone they are all there is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from hmac import compare_digest
from typing import Any

import orjson
from starlette.responses import JSONResponse, Response, StreamingResponse

from agspec.errors import AgspecError
from agspec.serve.bodies import BadRequest
from agspec.serve.events import event
from agspec.serve.fim import asked as read
from agspec.serve.fim import shapes
from agspec.serve.fim.asked import Asked
from agspec.serve.fim.backend import BackendError
from agspec.serve.fim.service import FimService, Running
from agspec.serve.leaving import unless_gone
from agspec.serve.middleware import Receive, Scope, Send, body_of

COMPLETIONS = "/v1/completions"
TASKS = "/v1/tasks/fim"
READERS: dict[str, tuple[Callable[[Any], Asked], Callable[[str, str], shapes.Shape]]] = {
    COMPLETIONS: (read.completions, shapes.Completions),
    "/v1/fim/completions": (read.mistral, shapes.Mistral),
    "/infill": (read.infill, shapes.Infill),
    "/v1/infill": (read.infill, shapes.Infill),
    "/v1/autocomplete": (read.autocomplete, shapes.Autocomplete),
}
PATHS = frozenset([*READERS, TASKS])

Extra = Callable[[Mapping[str, str], Asked], tuple[Mapping[str, Any], Callable[[bool], None]]]
"""Headers and request -> what goes along to the engine, and what is told of the end (whether it was complete)."""


def no_extra(headers: Mapping[str, str], asked: Asked) -> tuple[Mapping[str, Any], Callable[[bool], None]]:
    """Where there is no engine of ours."""
    return {}, lambda complete: None


class FimRoutes:
    """Answers the requests of PATHS. ``keys``: one of these is wanted, where there are any."""

    def __init__(
        self, service: FimService, *, models: tuple[str, ...], keys: tuple[str, ...] = (), extra: Extra = no_extra
    ) -> None:
        self._service = service
        self._models = models
        self._keys = keys
        self._extra = extra

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one POST."""
        content = await body_of(receive)
        if content is not None:
            await (await self.answer(scope, content, receive))(scope, receive, send)

    async def answer(self, scope: Scope, content: bytes, receive: Receive) -> Response:
        """The response to a request with this body."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not self._may(headers):
            return _error(401, "want the server's API key", None)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        try:
            body = orjson.loads(content)
        except orjson.JSONDecodeError as error:
            return _error(400, f"want a JSON object, got: {error}", None)
        runs: list[Running] = []
        try:
            asked = read.tasks(body) if path == TASKS else [READERS[path][0](body)]
            model = asked[0].model
            if model is not None and self._models and model not in self._models:
                return _error(404, f"want one of the models {', '.join(self._models)}, got {model}", "model")
            told = [self._extra(headers, one) for one in asked]
            runs = [Running(self._service, one, extra) for one, (extra, _) in zip(asked, told, strict=True)]
        except BadRequest as error:
            return _error(400, str(error), error.field)
        ends = [end for _, end in told]
        make = shapes.Tasks if path == TASKS else READERS[path][1]
        shape = make(runs[0].name, model or self._service.backend.model)
        if asked[0].stream:
            return StreamingResponse(_stream(runs, ends, shape), media_type="text/event-stream")
        return await _whole(runs, ends, shape, receive, several=path == TASKS)

    def _may(self, headers: Mapping[str, str]) -> bool:
        given = headers.get("authorization", "").removeprefix("Bearer ") or headers.get("x-api-key", "")
        return not self._keys or any(compare_digest(given.encode(), key.encode()) for key in self._keys)


async def _whole(
    runs: list[Running], ends: list[Callable[[bool], None]], shape: shapes.Shape, receive: Receive, *, several: bool
) -> Response:
    async def text_of(run: Running, end: Callable[[bool], None]) -> str:
        text = ""
        try:
            async with aclosing(run.texts()) as pieces:
                async for piece in pieces:
                    text += piece
        finally:
            end(run.done.reason in ("stop", "length"))
        return text

    async def all_of() -> list[str]:
        return await asyncio.gather(*map(text_of, runs, ends))

    try:
        texts = await unless_gone(all_of(), receive)
    except BackendError as error:
        return _error(error.status, str(error), None)
    except ValueError as error:  # of the engine: a request that it refuses
        return _error(400, str(error), None)
    if texts is None:
        return Response(status_code=499)
    if not several:
        if runs[0].done.reason == "superseded":
            return _error(409, f"superseded by a newer request of editor {runs[0].asked.editor}", "editor_id")
        return JSONResponse(shape.whole(texts[0], runs[0].done))
    choices = [
        {"index": i, **shape.whole(text, run.done)} for i, (text, run) in enumerate(zip(texts, runs, strict=True))
    ]
    return JSONResponse({"id": runs[0].name, "object": "FIM.completion", "choices": choices})


async def _stream(
    runs: list[Running], ends: list[Callable[[bool], None]], shape: shapes.Shape
) -> AsyncGenerator[bytes, None]:
    """Events of all runs as they come; an error is one too."""
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def follow(index: int) -> None:
        run = runs[index]
        try:
            async with aclosing(run.texts()) as pieces:
                async for piece in pieces:
                    queue.put_nowait(shape.piece(piece, index))
            queue.put_nowait(shape.end(run.done, index))
        except (AgspecError, ValueError) as error:
            status = error.status if isinstance(error, BackendError) else 400
            queue.put_nowait(event({"error": _told(status, str(error), None)}))
        finally:
            ends[index](run.done.reason in ("stop", "length"))
            queue.put_nowait(None)

    tasks = [asyncio.ensure_future(follow(index)) for index in range(len(runs))]
    left = len(tasks)
    try:
        while left:
            told = await queue.get()
            if told is None:
                left -= 1
            else:
                yield told
        if shape.last:
            yield shape.last
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _told(status: int, message: str, field: str | None) -> dict[str, Any]:
    kind = {400: "BadRequestError", 401: "AuthenticationError", 404: "NotFoundError"}.get(status, "BackendError")
    return {"message": message, "type": kind, "param": field, "code": status}


def _error(status: int, message: str, field: str | None) -> JSONResponse:
    return JSONResponse({"error": _told(status, message, field)}, status)
