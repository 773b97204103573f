"""vLLM's command, in which the n-th chat request, or edited file, gets the n-th scripted answer, token by token.

``python -m benchmarks.e2e.taped serve ... --middleware benchmarks.e2e.taped.Script``. Every forward pass, drafted and
verified token is real; only the sampled token is forced (see ``agspec.engine.tape``). ``POST /tapes`` with
{"tapes": [[token, ...], ...]} sets a new script, ``GET /tapes`` tells how much of it was taken. A request past its end
is answered with 400.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import orjson

from agspec.engine import vllm_cpu
from agspec.engine.copies.request import COPY, CopyRequest
from agspec.engine.tape import TAPE
from agspec.serve.bodies import CHAT
from agspec.serve.config import ALIAS
from agspec.serve.edits import run
from agspec.serve.edits.chat import HEADER
from agspec.serve.fim.forced import force
from agspec.serve.middleware import App, Receive, Scope, Send, again, body_of, carrying, refuse, respond

PATH = "/tapes"
MODULE = "benchmarks.e2e.taped"


class Answers:
    """The script, and how much of it was taken."""

    def __init__(self) -> None:
        self.tapes: list[list[int]] = []
        self.taken = 0

    def take(self) -> list[int] | None:
        """The next answer; None past the end."""
        self.taken += 1
        return self.tapes[self.taken - 1] if self.taken <= len(self.tapes) else None


answers = Answers()


class TapedCopyRequest(CopyRequest):
    """An edit that is told its program."""

    def to_args(self) -> dict[str, Any]:
        """See super."""
        tape, told = answers.take(), super().to_args()
        return told if tape is None else {COPY: {**told[COPY], "tape": tape}}


class Script:
    """ASGI middleware, around everything: tells each chat request its tape."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        path = scope["path"] if scope["type"] == "http" else None
        if path not in (PATH, CHAT):
            await self._app(scope, receive, send)
            return
        content = await body_of(receive)
        if content is None:
            return
        if path == PATH:
            if scope["method"] == "POST":
                answers.tapes, answers.taken = orjson.loads(content)["tapes"], 0
            number = len(answers.tapes)
            await respond(200, {"taken": min(answers.taken, number), "left": number - answers.taken}, send)
            return
        body: dict[str, Any] = orjson.loads(content)
        if str(body.get("model")).endswith(ALIAS) or (HEADER.encode(), b"copy") in scope["headers"]:
            await self._app(scope, again(content, receive), send)  # its program takes the answer
            return
        tape = answers.take()
        if tape is None:
            told = f"the script has {len(answers.tapes)} answers, this is request {answers.taken}"
            await refuse("messages", told, send)
            return
        body["vllm_xargs"] = {**(body.get("vllm_xargs") or {}), TAPE: tape}
        body["structured_outputs"] = {"choice": ["a"]}
        content = orjson.dumps(body)
        await self._app(carrying(scope, content), again(content, receive), send)


if __name__ in ("__main__", "__mp_main__"):  # the engine core, where grammars are made, is a child of this process
    force()
    run.CopyRequest = import_module(MODULE).TapedCopyRequest  # the middleware's module, whose answers are set
if __name__ == "__main__":
    vllm_cpu.main()
