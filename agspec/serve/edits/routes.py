"""The route."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from agspec.copyedit.token_machine import Vocabulary
from agspec.errors import AgspecError, CopyError
from agspec.serve.bodies import BadRequest
from agspec.serve.edits.body import Counts, EditBody, Edited, EditedFile, File, Way, read_body
from agspec.serve.edits.choose import Choice
from agspec.serve.edits.prompt import messages, tokens_of
from agspec.serve.edits.run import EditError, Running
from agspec.serve.events import event
from agspec.serve.hub import Hub, Ticket
from agspec.serve.leaving import unless_gone

router = APIRouter(prefix="/v1")
SPARE = 512
"""Tokens a result may have beyond those of its file, where the request does not say."""


class Editing:
    """What the route needs of this server process. ``every``: of prompt.numbered."""

    def __init__(
        self, engine: Any, hub: Hub, vocabulary: Vocabulary, models: tuple[str, ...], choice: Choice, every: int = 1
    ) -> None:
        self.engine = engine
        self.hub = hub
        self.vocabulary = vocabulary
        self.models = models
        self._choice = choice
        self._every = every

    def begin(self, body: EditBody, file: File, headers: dict[str, str]) -> tuple[Running, Ticket]:
        """A file's edit, and what its end is told with; raises BadRequest."""
        size = len(self.vocabulary.encode(file.text.encode()))
        way, prompt = self._asked(body, file, size)
        room = self.engine.model_config.max_model_len - len(prompt) - 1
        if room < 1:
            raise BadRequest("files", f"want files that leave room in the model's context, got {len(prompt)} tokens")
        most = min(room, body.max_tokens or size + SPARE)
        ticket = self.hub.ticket(headers, role="editor")
        name = f"edit-{uuid4().hex}"
        running = Running(
            self.engine, self.vocabulary, file.path, way, prompt, [one.text for one in body.files], name, most,
            room, {"temperature": body.temperature}, ticket.extra_args,
        )  # fmt: skip
        return running, ticket

    def _asked(self, body: EditBody, file: File, size: int) -> tuple[Way, list[int]]:
        """How ``file``, of ``size`` tokens, is written: as asked, else the cheaper way; and the prompt for that."""
        tokenizer = self.engine.renderer.get_tokenizer()
        ways: tuple[Way, ...] = ("copy", "whole") if body.edit == "auto" else (body.edit,)
        prompts = {way: tokens_of(tokenizer, messages(body, file, way, every=self._every)) for way in ways}
        way = ways[0]
        if len(ways) > 1:
            way = self._choice.way(size, numbering=len(prompts["copy"]) - len(prompts["whole"]))
        return way, prompts[way]


@router.post("/edits")
async def edits(request: Request) -> Response:
    """Rewrite files by an instruction: see the package."""
    editing: Editing | None = getattr(request.app.state, "agspec_edits", None)
    if editing is None:
        return _error(501, "edits are off: start the server with agspec serve --copy-edits", None)
    try:
        body = read_body(await request.json())
    except BadRequest as error:
        return _error(400, str(error), error.field)
    except ValueError as error:
        return _error(400, f"want a JSON object, got: {error}", None)
    if body.model not in editing.models:
        return _error(404, f"want one of the models {', '.join(editing.models)}, got {body.model}", "model")
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        runs = [editing.begin(body, file, headers) for file in body.files]
    except BadRequest as error:
        return _error(400, str(error), error.field)
    if body.stream:
        return StreamingResponse(_stream(editing, body, runs), media_type="text/event-stream")
    try:
        answer = await unless_gone(_whole(editing, body, runs), request.receive)
    except (EditError, CopyError) as error:
        return _error(422, str(error), "files")
    return Response(status_code=499) if answer is None else JSONResponse(answer.model_dump())


async def _whole(editing: Editing, body: EditBody, runs: list[tuple[Running, Ticket]]) -> Edited:
    files = []
    for run, ticket in runs:
        async for _ in _texts(editing, run, ticket):
            pass
        files.append(run.result())
    return _edited(body, files)


async def _texts(editing: Editing, run: Running, ticket: Ticket) -> AsyncGenerator[str, None]:
    """Of one file; however it ends, the engine is told."""
    try:
        async with aclosing(run.texts()) as texts:
            async for text in texts:
                yield text
    finally:
        editing.hub.ticket_ended(ticket, complete=run.complete)


async def _stream(editing: Editing, body: EditBody, runs: list[tuple[Running, Ticket]]) -> AsyncGenerator[bytes, None]:
    """Events: {"path", "text"} as text is known, the whole answer at the end."""
    files = []
    try:
        for run, ticket in runs:
            async with aclosing(_texts(editing, run, ticket)) as texts:
                async for text in texts:
                    yield event({"path": run.path, "text": text})
            files.append(run.result())
        yield event(_edited(body, files).model_dump())
    except AgspecError as error:
        yield event({"error": {"message": str(error), "type": "EditError", "param": "files", "code": 422}})
    yield b"data: [DONE]\n\n"


def _edited(body: EditBody, files: list[EditedFile]) -> Edited:
    total = Counts()
    for file in files:
        total = total + file.counts
    return Edited(model=body.model, files=tuple(files), counts=total)


def _error(status: int, message: str, field: str | None) -> JSONResponse:
    kind = "BadRequestError" if status == 400 else "EditError"
    return JSONResponse({"error": {"message": message, "type": kind, "param": field, "code": status}}, status)
