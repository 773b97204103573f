"""``agspec record``: what passes comes through unchanged and is kept as a trace."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from agspec.replay.trace import read_trace
from agspec.scaffold import load_profiles
from agspec.serve.proxy import Listener, recording_proxy
from agspec.serve.recorder import Recorder

Test = Callable[[httpx.AsyncClient], Awaitable[None]]
MESSAGES = [{"role": "system", "content": "Act as an expert code analyst."}, {"role": "user", "content": "Hello"}]


def upstream(seen: list[tuple[bytes, dict[str, str]]]) -> FastAPI:
    app = FastAPI()

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        content = await request.body()
        seen.append((content, dict(request.headers)))
        if content == b"{":
            return Response(b"no JSON", 400)
        body = json.loads(content)
        if not isinstance(body, dict) or not body.get("stream"):
            said = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "sk-" + "a" * 30}}]}
            return Response(json.dumps(said, indent=3), 200, {"x-of-theirs": "1"}, "application/json")

        async def pieces() -> AsyncIterator[str]:
            for word in ("one ", "two"):
                yield f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': word}}]})}\n\n"
            yield "data: [DONE]\n\n"

        return StreamingResponse(pieces(), media_type="text/event-stream")

    @app.get("/v1/models")
    async def models(request: Request) -> dict[str, Any]:
        return {"data": [], "asked": str(request.url.query)}

    return app


def passed(path: Path, test: Test) -> list[tuple[bytes, dict[str, str]]]:
    seen: list[tuple[bytes, dict[str, str]]] = []
    listener = Listener(Recorder(path), load_profiles())
    app = recording_proxy("http://up/v1/", listener, httpx.ASGITransport(app=upstream(seen)))

    async def run() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://proxy") as client:
            await test(client)

    asyncio.run(run())
    return seen


def test_what_passes_is_unchanged_and_recorded(tmp_path: Path) -> None:
    content = json.dumps({"model": "m", "messages": MESSAGES, "temperature": 0.3}, indent=2).encode()

    async def test(client: httpx.AsyncClient) -> None:
        done = await client.post("/v1/chat/completions", content=content, headers={"authorization": "Bearer key-1"})
        assert (done.status_code, done.headers["x-of-theirs"]) == (200, "1")
        assert done.text.startswith('{\n   "choices"')
        streamed = await client.post("/v1/chat/completions", json={"messages": MESSAGES, "stream": True})
        assert streamed.headers["content-type"].startswith("text/event-stream")
        assert streamed.text.count("data: ") == 3
        assert (await client.get("/v1/models?limit=2")).json() == {"data": [], "asked": "limit=2"}

    seen = passed(tmp_path / "t.jsonl.gz", test)
    assert seen[0][0] == content
    assert seen[0][1]["authorization"] == "Bearer key-1"
    (call,) = read_trace(tmp_path / "t.jsonl.gz").calls
    assert (call.output.content, call.model, [m.content for m in call.messages][1]) == ("one two", None, "Hello")
    (theirs,) = [path for path in tmp_path.iterdir() if path.name != "t.jsonl.gz"]
    (call,) = read_trace(theirs).calls
    assert (call.output.content, call.model) == ("[redacted]", "m"), "another key's, and without its secret"


@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"messages": 3}', b'{"messages": [{"role": 5}]}'])
def test_what_cannot_be_read_passes_too(tmp_path: Path, content: bytes) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        done = await client.post("/v1/chat/completions", content=content)
        assert done.status_code == (400 if content == b"{" else 200)

    assert passed(tmp_path / "t.jsonl", test)[0][0] == content


def test_no_server_behind_is_one_clear_answer(tmp_path: Path) -> None:
    listener = Listener(Recorder(tmp_path / "t.jsonl"), load_profiles())

    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(app=recording_proxy("http://127.0.0.1:9", listener))
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as client:
            return await client.post("/v1/chat/completions", json={"messages": MESSAGES})

    done = asyncio.run(run())
    assert done.status_code == 502
    assert "want a server at http://127.0.0.1:9/v1/chat/completions, got" in done.json()["error"]["message"]
    assert listener.num_recorded == 0


def test_the_command_listens(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    line = [sys.executable, "-m", "agspec.cli", "record", "http://127.0.0.1:9", "-o", str(tmp_path / "t.jsonl"),
            "--port", str(port)]  # fmt: skip
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    assert httpx.get(f"http://127.0.0.1:{port}/v1/models").status_code == 502
                    break
                except httpx.TransportError:
                    assert time.monotonic() < until
                    time.sleep(0.2)
        finally:
            process.terminate()
        assert process.stderr is not None
        assert f"point the agent at http://127.0.0.1:{port}/v1" in process.stderr.read()
