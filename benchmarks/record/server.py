"""A scripted OpenAI-compatible server: the n-th request gets the n-th answer, and both are recorded.

Speaks ``GET /v1/models`` and ``POST /v1/chat/completions``, plain or as server-sent events, with tool calls.
The record is JSON lines as ``agspec import openai`` reads them: ``{"request", "response", "session"}``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

MODEL = "scripted"
CREATED = 1795996800
PIECE = 24
"""Characters a streamed chunk carries."""


@dataclass(frozen=True)
class Answer:
    """What the model says: text, and tool calls as (name, arguments)."""

    content: str = ""
    tool_calls: tuple[tuple[str, dict[str, Any]], ...] = ()


@dataclass
class ScriptedServer:
    """Serves ``answers`` in order on 127.0.0.1 inside a ``with`` block; ``record`` gets a line for each.

    A request past the end of the script is answered with an error and counted in ``unanswered``.
    """

    answers: Sequence[Answer]
    record: Path
    session: str
    unanswered: int = 0
    num_answered: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _http: ThreadingHTTPServer | None = None

    @property
    def base_url(self) -> str:
        """The address clients are given."""
        if self._http is None:
            raise RuntimeError("want a running server, got one that was not entered")
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> ScriptedServer:
        script = self

        class Handler(_Handler):
            server_script = script

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The next scripted response, recorded with its request; None when the script is over."""
        with self._lock:
            if self.num_answered == len(self.answers):
                self.unanswered += 1
                return None
            response = completion(self.answers[self.num_answered], self.num_answered)
            self.num_answered += 1
            line = {"request": request, "response": response, "session": self.session}
            with self.record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
            return response


def completion(answer: Answer, number: int) -> dict[str, Any]:
    """``answer`` as the body of a chat.completions response."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.content}
    if answer.tool_calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
            }
            for index, (name, arguments) in enumerate(answer.tool_calls)
        ]
    finish = "tool_calls" if answer.tool_calls else "stop"
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": CREATED,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def chunks(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same response as the chunks of a stream."""
    choice = response["choices"][0]
    message = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    content = message["content"]
    deltas += [{"content": content[at : at + PIECE]} for at in range(0, len(content), PIECE)]
    deltas += [{"tool_calls": [{"index": i, **call}]} for i, call in enumerate(message.get("tool_calls", []))]
    head = {"id": response["id"], "object": "chat.completion.chunk", "created": CREATED, "model": MODEL}
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    yield {**head, "choices": [last], "usage": response["usage"]}


class _Handler(BaseHTTPRequestHandler):
    server_script: ScriptedServer

    def do_GET(self) -> None:
        if self.path.rstrip("/") != "/v1/models":
            self._json(404, _error(f"want /v1/models, got {self.path}"))
            return
        self._json(200, {"object": "list", "data": [{"id": MODEL, "object": "model", "created": CREATED}]})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path.rstrip("/") != "/v1/chat/completions":
            self._json(404, _error(f"want /v1/chat/completions, got {self.path}"))
            return
        try:
            request = json.loads(body)
        except ValueError as error:
            self._json(400, _error(f"want JSON: {error}"))
            return
        response = self.server_script.answer(request)
        if response is None:
            self._json(400, _error("the script has no more answers"))
        elif request.get("stream"):
            lines = [json.dumps(chunk) for chunk in chunks(response)] + ["[DONE]"]
            self._send(200, "text/event-stream", "".join(f"data: {line}\n\n" for line in lines).encode())
        else:
            self._json(200, response)

    def _json(self, status: int, value: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the record is the log."""


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": None}}
