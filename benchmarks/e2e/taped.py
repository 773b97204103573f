"""vLLM's command, in which the n-th chat request gets the n-th scripted answer, token by token.

``python -m benchmarks.e2e.taped serve ... --middleware benchmarks.e2e.taped.Script``. Every forward pass, drafted and
verified token is real; only the sampled token is forced (see ``agspec.engine.tape``). ``POST /tapes`` with
{"tapes": [[token, ...], ...]} sets a new script, ``GET /tapes`` tells how much of it was taken. A request past its end
is answered with 400.
"""

from __future__ import annotations

from typing import Any

import orjson

from agspec.engine import vllm_cpu
from agspec.engine.patches import force_tapes
from agspec.engine.tape import TAPE
from agspec.serve.bodies import CHAT
from agspec.serve.middleware import App, Receive, Scope, Send, again, body_of, carrying, refuse, respond

PATH = "/tapes"


class Script:
    """ASGI middleware, around everything: tells each chat request its tape."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._tapes: list[list[int]] = []
        self._taken = 0

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
                self._tapes, self._taken = orjson.loads(content)["tapes"], 0
            told = {"taken": min(self._taken, len(self._tapes)), "left": len(self._tapes) - self._taken}
            await respond(200, told, send)
            return
        number, self._taken = self._taken, self._taken + 1
        if number >= len(self._tapes):
            await refuse("messages", f"the script has {len(self._tapes)} answers, this is request {number + 1}", send)
            return
        body: dict[str, Any] = orjson.loads(content)
        body["vllm_xargs"] = {**(body.get("vllm_xargs") or {}), TAPE: self._tapes[number]}
        body["structured_outputs"] = {"choice": ["a"]}
        content = orjson.dumps(body)
        await self._app(carrying(scope, content), again(content, receive), send)


if __name__ in ("__main__", "__mp_main__"):  # the engine core, where grammars are made, is a child of this process
    vllm_cpu.mend_version()
    force_tapes()
if __name__ == "__main__":
    vllm_cpu.main()
