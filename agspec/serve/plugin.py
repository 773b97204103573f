"""agspec's endpoint plugin for vLLM's API server: middleware, routes under /v1/agspec, and the hub behind both.

vLLM loads it through the entry point group ``vllm.endpoint_plugins`` when VLLM_PLUGINS names it. Its routes start with
/v1, for that is what vLLM's ``--api-key`` guards.
"""

from __future__ import annotations

import asyncio
import logging
import os
from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson
from fastapi import APIRouter, FastAPI, HTTPException, Request
from prometheus_client import REGISTRY

from agspec.build import step_cost
from agspec.copyedit.token_machine import Vocabulary
from agspec.engine.config import SECRET, from_environment, log_with_vllm
from agspec.errors import AgspecError, InputError
from agspec.scaffold import load_profiles
from agspec.serve.config import ServeConfig, tool_wire_of
from agspec.serve.edits.chat import Answering
from agspec.serve.edits.choose import Choice
from agspec.serve.edits.routes import Editing
from agspec.serve.edits.routes import router as edits_router
from agspec.serve.exchange import Exchange
from agspec.serve.fim.attach import make_routes
from agspec.serve.fim.attach import router as fim_router
from agspec.serve.fim.routes import COMPLETIONS, FimRoutes
from agspec.serve.hub import Hub
from agspec.serve.metrics import HubMetrics
from agspec.serve.middleware import Middleware
from agspec.serve.playground.app import PLACE, page
from agspec.serve.recorder import Recorder, tagged
from agspec.serve.sessions import Session
from agspec.serve.speaker import tenant_of
from agspec.serve.workspace import Workspace
from agspec.tokens import load_tokenizer

log = logging.getLogger("agspec")

router = APIRouter(prefix="/v1/agspec")


class Plugin:
    """See vllm/plugins/endpoint_plugins/interface.py (vLLM 0.32)."""

    name = "agspec"
    required_tasks = ("generate",)

    def attach_router(self, app: FastAPI) -> None:
        """Called while the app is built, before authentication is put around it."""
        app.include_router(router)
        app.include_router(edits_router)
        app.include_router(fim_router)
        _mount_page(app)
        app.add_middleware(
            Middleware,
            hub_of=lambda scope: getattr(scope["app"].state, "agspec", None),
            instead=_answer,
            apart=_complete,
        )

    async def init_state(self, engine_client: Any, state: Any, args: Namespace) -> None:
        """Called once in each API server process, when the engine is ready. Never raises: that would end the server."""
        log_with_vllm()
        state.agspec = None
        try:
            state.agspec = await make_hub(engine_client, args)
            if state.agspec.config.copy_edits:
                state.agspec_edits = editing = _editing(engine_client, state.agspec, args)
                state.agspec_answers = _answering(editing, state.agspec, args)
            state.agspec_fim = _completing(engine_client, state.agspec, args)
        except AgspecError as error:
            log.error("agspec is off: %s", error)
        except Exception:
            log.exception("agspec is off")


def _mount_page(app: FastAPI) -> None:
    """The playground, where it is asked for."""
    try:
        folder = ServeConfig.from_environment().playground
    except AgspecError:  # init_state says it
        return
    if folder is not None:
        app.mount(PLACE, page(folder))


async def make_hub(engine_client: Any, args: Namespace) -> Hub:
    """The hub of this process, its jobs under way; AgspecError says what is missing."""

    async def rpc(method: str, arguments: tuple[Any, ...]) -> Any:
        # without a time-out: one that fires ends vLLM 0.32's engine
        return await engine_client.collective_rpc(method, args=arguments)

    try:
        attached = await rpc("agspec_attach", ())
    except Exception as error:
        raise AgspecError(f"want --worker-extension-cls agspec.engine.extension.Extension ({error})") from error
    if not all(attached):
        raise AgspecError("want --speculative-config with agspec.engine.proposer.Proposer")
    config = ServeConfig.from_environment()
    wire = tool_wire_of(args.tool_call_parser) if config.tool_wire == "auto" else config.tool_wire
    hub = Hub(
        config,
        profiles=load_profiles(*config.profiles),
        tokenizer=load_tokenizer(args.tokenizer or args.model),
        tool_wire=wire,
        rpc=rpc,
        workspace=None if config.workspace is None else Workspace(config.workspace),
        recorder=_recorder(config, args),
        max_model_len=engine_client.model_config.max_model_len,
        secret=os.environ.get(SECRET, ""),
    )
    loop = asyncio.get_running_loop()
    hub.tasks += [loop.create_task(hub.run()), loop.create_task(hub.watch())]
    REGISTRY.register(HubMetrics(hub))
    told = "all keys share their stores" if config.share_tenants else "a tenant an API key; without keys all are one"
    log.info("agspec is on: tool arguments are %s, %s", wire, told)
    return hub


def _models(args: Namespace) -> tuple[str, ...]:
    names = args.served_model_name or [args.model]
    return tuple([names] if isinstance(names, str) else names)


def _completing(engine_client: Any, hub: Hub, args: Namespace) -> FimRoutes | str:
    """The completion routes, or why there are none."""
    try:
        return make_routes(engine_client, hub, args, _models(args))
    except InputError as error:
        log.info("agspec: completion is off: %s", error)
        return f"completion is off: {error}"


def _editing(engine_client: Any, hub: Hub, args: Namespace) -> Editing:
    vocabulary = Vocabulary(load_tokenizer(args.tokenizer or args.model))
    settings = from_environment()
    return Editing(
        engine_client, hub, vocabulary, _models(args),
        Choice(step_cost(settings), settings.max_draft), hub.config.copy_anchors,
    )  # fmt: skip


def _answering(editing: Editing, hub: Hub, args: Namespace) -> Answering:
    parser = args.tool_call_parser if getattr(args, "enable_auto_tool_choice", False) else None
    parse = None if parser is None else partial(_parse_tools, parser, editing.engine.renderer.get_tokenizer())
    sampling = editing.engine.model_config.get_diff_sampling_param()
    return Answering(editing, parse_tools=parse, escaped=hub.tool_wire == "json", sampling=sampling)


def _parse_tools(
    parser: str, tokenizer: Any, text: str, body: dict[str, Any]
) -> tuple[str | None, list[dict[str, Any]]]:
    """As vLLM reads calls from a whole answer."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.tool_parsers import ToolParserManager

    request = ChatCompletionRequest.model_validate(body)
    tools: Any = request.tools
    found = ToolParserManager.get_tool_parser(parser)(tokenizer, tools).extract_tool_calls(text, request)
    return found.content, [call.model_dump() for call in found.tool_calls]


def _answer(scope: Any, exchange: Exchange, headers: Mapping[str, str]) -> Any:
    """What answers a chat request to NAME+copy."""
    answering: Answering | None = getattr(scope["app"].state, "agspec_answers", None)
    return None if answering is None else answering.app(exchange, headers)


def _complete(scope: Any, path: str, content: bytes) -> FimRoutes | None:
    """What answers a completion between two texts, in the place of vLLM's own route."""
    routes = getattr(scope["app"].state, "agspec_fim", None)
    if path != COMPLETIONS or not isinstance(routes, FimRoutes) or b'"suffix"' not in content:
        return None
    try:
        return routes if orjson.loads(content).get("suffix") else None
    except (orjson.JSONDecodeError, AttributeError):
        return None


def _recorder(config: ServeConfig, args: Namespace) -> Recorder | None:
    """The recorder; each of several API server processes has a file of its own, for a trace has one writer."""
    if config.record is None:
        return None
    several = (getattr(args, "api_server_count", None) or 1) > 1
    return Recorder(tagged(config.record, os.getpid()) if several else config.record, redact=config.redact)


def _hub(request: Request) -> Hub:
    hub: Hub | None = getattr(request.app.state, "agspec", None)
    if hub is None:
        raise HTTPException(503, "agspec is off: see the server's log")
    return hub


def _tenant(request: Request, hub: Hub) -> str:
    return tenant_of(dict(request.headers), share=hub.config.share_tenants)


@router.get("/stats")
async def stats(request: Request) -> dict[str, Any]:
    """What the workers count, one entry a rank, and this process's own errors."""
    hub = _hub(request)
    return {
        "workers": await hub.refresh(), "errors": dict(hub.errors), "links": dict(hub.links),
        "num_waiting_jobs": hub.num_waiting_jobs, "num_dropped_jobs": hub.num_dropped_jobs,
        "num_sessions": sum(1 for _ in hub.sessions),
    }  # fmt: skip


@router.get("/sessions")
async def sessions(request: Request) -> list[dict[str, Any]]:
    """The caller's own sessions, the one used last first."""
    hub = _hub(request)
    mine = [session for session in hub.sessions if session.tenant == _tenant(request, hub)]
    return [_told(session) for session in sorted(mine, key=lambda session: -session.last)]


@router.delete("/sessions/{name:path}")
async def end_session(name: str, request: Request) -> dict[str, Any]:
    """A session of the caller's is over: its store goes."""
    hub = _hub(request)
    session = hub.sessions.get(_tenant(request, hub), name)
    if session is None:
        raise HTTPException(404, f"want one of your sessions, got {name[:100]!r}")
    hub.sessions.end(session)
    return _told(session)


def _told(session: Session) -> dict[str, Any]:
    return {
        "session": session.name, "scaffold": session.scaffold, "num_requests": session.num_requests,
        "roles": dict(session.roles), "links": dict(session.links),
    }  # fmt: skip
