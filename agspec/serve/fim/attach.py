"""Completion inside ``agspec serve``: the engine of this process, sessions by editor, open files into the stores."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from agspec.engine.config import TENANT
from agspec.fim.families import Order
from agspec.fim.vocabulary import FimVocabulary
from agspec.messages import digest
from agspec.serve.fim.asked import Asked
from agspec.serve.fim.backend import EngineBackend
from agspec.serve.fim.family import family_from
from agspec.serve.fim.routes import COMPLETIONS, PATHS, FimRoutes
from agspec.serve.fim.service import FimService
from agspec.serve.hub import Hub
from agspec.tokens import load_tokenizer

router = APIRouter()

made_of: type[FimRoutes] = FimRoutes
"""What ``make_routes`` makes; ``agspec.serve.fim.forced`` has one of its own."""


def make_routes(engine: Any, hub: Hub, args: Namespace, models: tuple[str, ...]) -> FimRoutes:
    """The routes of this server process; raises InputError where the model's family is not known."""
    name = args.tokenizer or args.model
    tokenizer = load_tokenizer(name)
    family = family_from(hub.config.fim_family, tokenizer.spec, models[0])
    order: Order | None = hub.config.fim_order
    if order is not None:
        family.layout(order)
    service = FimService(EngineBackend(engine, models[0]), family, FimVocabulary(tokenizer, family), order=order)
    keys = args.api_key if isinstance(args.api_key, list) else [args.api_key] if args.api_key else []

    def extra(headers: Mapping[str, str], asked: Asked) -> tuple[Mapping[str, Any], Callable[[bool], None]]:
        session = None if asked.editor is None else f"editor {digest(asked.editor).hex()}"
        ticket = hub.ticket(headers, role="fim", session=session)
        for file in asked.others:
            hub.open_text(ticket.extra_args[TENANT], file.path, file.text)
        return ticket.extra_args, lambda complete: hub.ticket_ended(ticket, complete=complete)

    return made_of(service, models=models, keys=tuple(keys), extra=extra)


async def _answer(request: Request) -> Response:
    routes: FimRoutes | str | None = getattr(request.app.state, "agspec_fim", None)
    if not isinstance(routes, FimRoutes):
        message = routes or "agspec is off: see the server's log"
        return JSONResponse(
            {"error": {"message": message, "type": "NotImplementedError", "param": None, "code": 501}}, 501
        )
    return await routes.answer(request.scope, await request.body(), request.receive)


for _path in sorted(PATHS - {COMPLETIONS}):
    router.add_api_route(_path, _answer, methods=["POST"])
