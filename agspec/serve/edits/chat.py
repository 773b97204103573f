"""The transparent mode: a chat request to the model ``NAME+copy`` is answered as ever, by a program of copies.

What the agent gets, whole or in a stream, is what the program writes. Requests that show no file, or ask for what a
program cannot give (see ``why_plain``), are left to vLLM, which serves ``NAME+copy`` as NAME.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import orjson
from fastapi.responses import JSONResponse, StreamingResponse

from agspec.messages import dicts, text_of
from agspec.serve.bodies import CHAT, BadRequest
from agspec.serve.config import ALIAS
from agspec.serve.edits.answer import asked_for, shown_files
from agspec.serve.edits.body import Counts
from agspec.serve.edits.prompt import tokens_of
from agspec.serve.edits.routes import Editing
from agspec.serve.edits.run import EditError, Running
from agspec.serve.events import event
from agspec.serve.exchange import Exchange
from agspec.serve.leaving import unless_gone
from agspec.serve.middleware import App, Receive, Scope, Send, refuse

log = logging.getLogger("agspec")

HEADER = "x-agspec-edit"
"""As the alias, where its value is "copy"."""
SAMPLED = (
    "temperature", "top_p", "top_k", "min_p", "seed", "repetition_penalty", "presence_penalty", "frequency_penalty",
)  # fmt: skip
READ = (
    "model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "tools", "tool_choice",
    "parallel_tool_calls", "chat_template_kwargs", *SAMPLED,
)  # fmt: skip
IDLE = ("user", "metadata", "store", "vllm_xargs", "prediction", "session_id", "prompt_cache_key", "safety_identifier",
        "service_tier", "request_id", "cache_salt", "priority")  # fmt: skip
"""Fields that do not change what is written."""

ParseTools = Callable[[str, dict[str, Any]], tuple[str | None, list[dict[str, Any]]]]
"""Text that the model wrote, and the request's body -> content and tool calls, as the API tells them."""


def why_plain(body: Mapping[str, Any], *, tools: bool) -> str | None:
    """What a request asks for that a program cannot give; None where there is nothing. ``tools``: calls can be read."""
    for name, value in body.items():
        if value in (None, False, [], {}) or name in READ or name in IDLE or (name == "n" and value == 1):
            continue
        return name
    if body.get("tools") and (not tools or body.get("tool_choice") not in (None, "auto")):
        return "tools"
    for message in dicts(body.get("messages")):
        content = message.get("content")
        if isinstance(content, list) and any(part.get("type") != "text" for part in dicts(content)):
            return "messages"
    return None


class Answering:
    """Answers chat requests by programs. ``parse_tools``: None where the server reads no tool calls."""

    def __init__(
        self, editing: Editing, *, parse_tools: ParseTools | None, escaped: bool, sampling: Mapping[str, Any]
    ) -> None:
        self._editing = editing
        self._parse_tools = parse_tools
        self._escaped = escaped
        self._sampling = {name: value for name, value in sampling.items() if name in SAMPLED}
        self._told: set[str] = set()

    def app(self, exchange: Exchange, headers: Mapping[str, str]) -> App | None:
        """What answers ``exchange``; None where vLLM is to do so."""
        if exchange.path != CHAT or not (
            (exchange.model or "").endswith(ALIAS) or headers.get(HEADER, "").strip().lower() == "copy"
        ):
            return None
        body: dict[str, Any] = orjson.loads(exchange.body)
        why = why_plain(body, tools=self._parse_tools is not None)
        files = shown_files(exchange.match.scaffold, exchange.asked.messages)
        if why is None and not files:
            why = "messages that show no file"
        if why is not None:
            if why not in self._told:
                self._told.add(why)
                log.info("agspec: %s: not answered by a program, for %s", exchange.model, why)
            return None
        messages = list(map(_plain_text, dicts(body.get("messages"))))
        escaped = self._escaped and bool(body.get("tools"))
        options = {"tools": body["tools"]} if body.get("tools") else {}
        prompt = tokens_of(
            self._editing.engine.renderer.get_tokenizer(), asked_for(messages, files, escaped=escaped),
            **options, **(body.get("chat_template_kwargs") or {}),
        )  # fmt: skip
        texts = tuple(file.text for file in files)
        return _Answer(self._editing, self._parse_tools, self._sampling, body, prompt, texts, escaped)


def _plain_text(message: dict[str, Any]) -> dict[str, Any]:
    """A message as chat templates take it: its content text, the arguments of its calls an object."""
    told = dict(message)
    if isinstance(told.get("content"), list):
        told["content"] = text_of(told["content"])
    calls = []
    for call in dicts(told.get("tool_calls")):
        function = dict(call.get("function") or {})
        with suppress(KeyError, TypeError, ValueError):
            function["arguments"] = orjson.loads(function["arguments"])
        calls.append({**call, "function": function})
    if calls:
        told["tool_calls"] = calls
    return told


@dataclass(frozen=True)
class _Answer:
    """ASGI: one request's answer. ``sources``: the texts that are copied from."""

    editing: Editing
    parse_tools: ParseTools | None
    sampling: Mapping[str, Any]
    body: dict[str, Any]
    prompt: list[int]
    sources: tuple[str, ...]
    escaped: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        try:
            run = self._running()
        except BadRequest as error:
            await refuse(error.field, str(error), send)
            return
        if self.body.get("stream"):
            await StreamingResponse(self._events(run), media_type="text/event-stream")(scope, receive, send)
            return
        told = await unless_gone(self._told(run), receive)
        if told is not None:
            await JSONResponse(told)(scope, receive, send)

    def _running(self) -> Running:
        from vllm import SamplingParams
        from vllm.exceptions import VLLMValidationError

        length = self.editing.engine.model_config.max_model_len
        room = length - len(self.prompt) - 1
        if room < 1:
            raise BadRequest("messages", f"want at most {length - 2} tokens with the program, got {len(self.prompt)}")
        asked = self.body.get("max_completion_tokens") or self.body.get("max_tokens") or room
        given = {name: self.body[name] for name in SAMPLED if self.body.get(name) is not None}
        params = {"temperature": 1.0, **self.sampling, **given}
        try:
            SamplingParams(**params, max_tokens=asked)
        except (TypeError, ValueError, VLLMValidationError) as error:
            raise BadRequest("sampling", str(error)) from error
        return Running(
            self.editing.engine, self.editing.vocabulary, "answer", "copy", self.prompt, self.sources,
            f"answer-{uuid4().hex}", min(room, asked), room, params, dict(self.body.get("vllm_xargs") or {}),
            self.escaped,
        )  # fmt: skip

    async def _told(self, run: Running) -> dict[str, Any]:
        text, reason = "", "stop"
        try:
            async for piece in run.texts():
                text += piece
        except EditError:
            reason = "length"
        content, calls = self._read(text)
        message = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if calls else reason}
        return {**self._head(run, "chat.completion"), "choices": [choice], **self._used(run.counts)}

    async def _events(self, run: Running) -> AsyncGenerator[bytes, None]:
        head = self._head(run, "chat.completion.chunk")
        tools = bool(self.body.get("tools"))
        text, reason = "", "stop"
        yield _chunk(head, {"role": "assistant", "content": ""})
        try:
            async with aclosing(run.texts()) as pieces:
                async for piece in pieces:
                    text += piece
                    if not tools:
                        yield _chunk(head, {"content": piece})
        except EditError:
            reason = "length"
        if tools:
            content, calls = self._read(text)
            if content:
                yield _chunk(head, {"content": content})
            if calls:
                reason = "tool_calls"
                yield _chunk(head, {"tool_calls": [{"index": i, **call} for i, call in enumerate(calls)]})
        yield _chunk(head, {}, reason)
        if (self.body.get("stream_options") or {}).get("include_usage"):
            yield event({**head, "choices": [], **self._used(run.counts)})
        yield b"data: [DONE]\n\n"

    def _read(self, text: str) -> tuple[str | None, list[dict[str, Any]]]:
        if not self.body.get("tools") or self.parse_tools is None:
            return text, []
        return self.parse_tools(text, self.body)

    def _head(self, run: Running, kind: str) -> dict[str, Any]:
        name = run.name.replace("answer", "chatcmpl")
        return {"id": name, "object": kind, "created": int(time.time()), "model": self.body.get("model")}

    def _used(self, counts: Counts) -> dict[str, Any]:
        """Tokens by OpenAI's names; copied ones, which were not decoded, stand in ``agspec`` alone."""
        prompt, decoded = len(self.prompt), counts.generated_tokens
        usage = {"prompt_tokens": prompt, "completion_tokens": decoded, "total_tokens": prompt + decoded}
        return {"usage": usage, "agspec": counts.model_dump()}


def _chunk(head: Mapping[str, Any], delta: dict[str, Any], reason: str | None = None) -> bytes:
    return event({**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]})
