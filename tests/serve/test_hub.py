"""Hub and middleware around an ASGI app: what the engine gets, what reaches the stores, what the client sees."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from git import Repo
from prometheus_client import CollectorRegistry

from agspec.messages import Message
from agspec.replay.trace import read_trace
from agspec.scaffold import load_profiles
from agspec.serve.config import ServeConfig
from agspec.serve.hub import Hub
from agspec.serve.metrics import HubMetrics
from agspec.serve.middleware import Middleware
from agspec.serve.plugin import router
from agspec.serve.recorder import Recorder
from agspec.serve.workspace import Workspace
from tests.replaying import make_tokenizer

FILE = "".join(f"{i} {i + 1} {i + 2}\n" for i in range(40))
CAT = "Here's the result of running `cat -n` on /p/a.py:\n" + "".join(
    f"{n:6}\t{line}\n" for n, line in enumerate(FILE.splitlines(), 1)
)


STATS: dict[str, Any] = {
    "by_source": {"session": {"num_drafts": 3, "num_draft_tokens": 30, "num_accepted_tokens": 20}},
    "by_role": {"coder": {"num_drafts": 3, "num_draft_tokens": 30, "num_accepted_tokens": 20}},
    "drift": 0.4, "num_requests": 1, "num_sessions": 2, "num_waiting_tokens": 0, "errors": {"draft": 1},
    "stores": {"session": {"memory_bytes": 1000, "num_evicted_tokens": 5}},
    "propose": {"num_steps": 7, "seconds": 0.5},
}  # fmt: skip


class Engine:
    """The server behind: it keeps what it was asked and answers what it is told to."""

    def __init__(self, config: ServeConfig | None = None, **more: Any) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.bodies: list[dict[str, Any]] = []
        self.says = "an answer of many words"
        self.hub = Hub(
            config or ServeConfig(), profiles=load_profiles(), tokenizer=make_tokenizer(), tool_wire="json",
            rpc=self._rpc, max_model_len=4096, **more,
        )  # fmt: skip
        self.app = FastAPI()
        self.app.include_router(router)
        self.app.state.agspec = self.hub
        self.app.post("/v1/chat/completions")(self._chat)
        self.app.add_middleware(Middleware, hub_of=lambda scope: scope["app"].state.agspec)

    async def _rpc(self, method: str, args: tuple[Any, ...]) -> Any:
        self.calls.append((method, args))
        if method == "agspec_prediction":
            return [[12, 9]]
        return [{**STATS, "drafts": [["r", [1]]]}] if method == "agspec_stats" else [None]

    async def _chat(self, request: Request) -> Any:
        try:
            body = await request.json()
            self.bodies.append(body)
            stream = body.get("stream")
        except (ValueError, AttributeError):
            return JSONResponse({"error": "no"}, 400)
        if body.get("fail"):
            return JSONResponse({"error": "no"}, 400)
        if not stream:
            said = {"choices": [{"index": 0, "message": {"role": "assistant", "content": self.says}}]}
            return {**said, "usage": body["usage"]} if "usage" in body else said
        return StreamingResponse(self._stream(body.get("break"), body.get("usage")), media_type="text/event-stream")

    async def _stream(self, broken: bool, usage: dict[str, Any] | None) -> AsyncIterator[str]:
        for word in self.says.split(" "):
            yield f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': word + ' '}}]})}\n\n"
        if usage is not None:
            yield f"data: {json.dumps({'choices': [], 'usage': usage}, separators=(',', ':'))}\n\n"
        if not broken:
            yield "data: [DONE]\n\n"

    def named(self, method: str) -> list[tuple[Any, ...]]:
        return [args for name, args in self.calls if name == method]


def served(engine: Engine, test: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
    async def run() -> None:
        task = asyncio.get_running_loop().create_task(engine.hub.run())
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=engine.app), base_url="http://x") as client:
            await test(client)
        await engine.hub.settled()
        task.cancel()

    asyncio.run(run())


def chat(*messages: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": role, "content": content} for role, content in messages], **more}


def test_a_request_is_told_who_speaks() -> None:
    engine = Engine()

    async def test(client: httpx.AsyncClient) -> None:
        body = chat(
            ("system", "Act as an expert architect engineer"), ("user", "plan it"), temperature=0.5,
            vllm_xargs={"mine": 1, "agspec_tenant": "somebody else", "agspec_role": "coder"},
        )  # fmt: skip
        done = await client.post("/v1/chat/completions", json=body, headers={"x-session-id": "s1"})
        assert done.json()["choices"][0]["message"]["content"] == engine.says

    served(engine, test)
    (body,) = engine.bodies
    told = body.pop("vllm_xargs")
    assert body.keys() == {"model", "messages", "temperature"}
    assert told.pop("agspec_request")
    assert told == {"mine": 1, "agspec_session": "s1", "agspec_tenant": "", "agspec_role": "architect"}


def test_opened_files_reach_the_stores_once_and_as_they_will_be_written() -> None:
    engine = Engine()
    first = chat(("system", "You are OpenHands agent"), ("user", "look"), ("assistant", "I look."), ("tool", CAT))

    async def test(client: httpx.AsyncClient) -> None:
        await client.post("/v1/chat/completions", json=first)
        again = {**first, "messages": [*first["messages"], {"role": "user", "content": "go on"}]}
        await client.post("/v1/chat/completions", json=again)

    served(engine, test)
    ((tenant, (path, _), forms),) = engine.named("agspec_open_file")
    assert (tenant, path) == ("", "/p/a.py")
    escaped = make_tokenizer().encode(json.dumps(FILE)[1:-1])
    assert [np.frombuffer(form, np.int32).tolist() for form in forms] == [escaped.tolist()]
    assert len({body["vllm_xargs"]["agspec_session"] for body in engine.bodies}) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_whole_answer_is_told_and_links_what_follows(stream: bool) -> None:
    engine = Engine()

    async def test(client: httpx.AsyncClient) -> None:
        done = await client.post("/v1/chat/completions", json=chat(("user", "a task"), stream=stream))
        assert engine.says in done.text.replace('"}}]}\n\ndata: {"choices": [{"index": 0, "delta": {"content": "', "")
        await client.post(
            "/v1/chat/completions",
            json=chat(("user", "all new"), ("assistant", f"{engine.says} "), ("user", "go on"), stream=stream),
        )

    served(engine, test)
    one, two = (body["vllm_xargs"] for body in engine.bodies)
    assert one["agspec_session"] == two["agspec_session"]
    assert engine.named("agspec_ended") == [(one["agspec_request"], True), (two["agspec_request"], True)]


@pytest.mark.parametrize("how", [{"fail": True}, {"stream": True, "break": True}])
def test_half_an_answer_is_not_kept_as_truth(how: dict[str, Any]) -> None:
    engine = Engine()

    async def test(client: httpx.AsyncClient) -> None:
        await client.post("/v1/chat/completions", json=chat(("user", "a task"), **how))

    served(engine, test)
    assert engine.named("agspec_ended") == [(engine.bodies[0]["vllm_xargs"]["agspec_request"], False)]


def test_what_is_no_request_passes_untouched() -> None:
    engine = Engine()

    async def test(client: httpx.AsyncClient) -> None:
        for content in (b'["a"]', b"\xff\xfe", b"{", b""):
            assert (await client.post("/v1/chat/completions", content=content)).status_code == 400
        assert (await client.post("/v1/chat/completions", content=b'{"messages": 3}')).status_code == 200
        assert (await client.get("/v1/chat/completions")).status_code == 405

    served(engine, test)
    assert not engine.hub.errors


def test_routes_show_a_tenant_its_own() -> None:
    engine = Engine()
    me, you = ({"authorization": f"Bearer {key}"} for key in ("me", "you"))

    async def test(client: httpx.AsyncClient) -> None:
        for headers, name in ((me, "a"), (me, "b/c"), (you, "a")):
            await client.post(
                "/v1/chat/completions", json=chat(("user", f"secret of {name}")),
                headers={**headers, "x-session-id": name},
            )  # fmt: skip
        shown = (await client.get("/v1/agspec/sessions", headers=me)).json()
        assert [session["session"] for session in shown] == ["b/c", "a"]
        assert shown[0] == {
            "session": "b/c", "scaffold": "generic", "num_requests": 1, "roles": {"chat": 1}, "links": {"named": 1},
        }  # fmt: skip
        assert (await client.delete("/v1/agspec/sessions/b/c", headers=you)).status_code == 404
        assert (await client.delete("/v1/agspec/sessions/b/c", headers=me)).status_code == 200
        stats = (await client.get("/v1/agspec/stats", headers=you)).json()
        assert stats == {
            "workers": [STATS], "errors": {}, "links": {"named": 3}, "num_dropped_jobs": 0,
            "num_waiting_jobs": stats["num_waiting_jobs"], "num_sessions": 2,
        }  # fmt: skip
        assert "secret" not in json.dumps([shown, stats])

    served(engine, test)
    assert len(engine.named("agspec_close_session")) == 1


def test_shared_tenants_and_a_given_scaffold() -> None:
    engine = Engine(ServeConfig(scaffold="aider", share_tenants=True))

    async def test(client: httpx.AsyncClient) -> None:
        await client.post("/v1/chat/completions", json=chat(("user", "x")), headers={"authorization": "Bearer me"})

    served(engine, test)
    told = engine.bodies[0]["vllm_xargs"]
    assert (told["agspec_tenant"], told["agspec_role"]) == ("", "coder")


def test_the_real_file_goes_before_what_was_shown(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "a.py").write_text("1 2 3\n")
    Repo.init(tmp_path).git.add("p/a.py")
    engine = Engine(workspace=Workspace(tmp_path))

    async def test(client: httpx.AsyncClient) -> None:
        await client.post("/v1/chat/completions", json=chat(("system", "You are OpenHands agent"), ("tool", CAT)))

    served(engine, test)
    ((_, (path, _), forms),) = engine.named("agspec_open_file")
    assert path == "p/a.py"
    assert np.frombuffer(forms[0], np.int32).tolist() == make_tokenizer().encode("1 2 3\\n").tolist()


@pytest.mark.parametrize("content", ["1 2 3", [{"type": "text", "text": "1 2"}, {"type": "text", "text": " 3"}]])
def test_a_prediction_reaches_the_drafter(content: Any) -> None:
    engine = Engine()

    async def test(client: httpx.AsyncClient) -> None:
        body = chat(("user", "a task"), prediction={"type": "content", "content": content})
        assert (await client.post("/v1/chat/completions", json=body)).status_code == 200

    served(engine, test)
    ((key, tokens),) = engine.named("agspec_expect")
    assert key == engine.bodies[0]["vllm_xargs"]["agspec_request"]
    assert np.frombuffer(tokens, np.int32).tolist() == make_tokenizer().encode("1 2 3").tolist()


@pytest.mark.parametrize(
    ("prediction", "line"),
    [
        ("text", 'prediction: want {"type": "content", "content": ...}, got str'),
        ({"type": "tokens", "content": "x"}, 'prediction: want {"type": "content"'),
        ({"type": "content"}, "prediction.content: want text or a list of text parts, got NoneType"),
        ({"type": "content", "content": [{"type": "image_url"}]}, "prediction.content: want text or a list"),
    ],
)
def test_G1_a_bad_prediction_is_refused(prediction: Any, line: str) -> None:
    engine = Engine()

    async def test(client: httpx.AsyncClient) -> None:
        done = await client.post("/v1/chat/completions", json=chat(("user", "x"), prediction=prediction))
        assert done.status_code == 400
        assert done.json()["error"]["message"].startswith(line)

    served(engine, test)
    assert (engine.bodies, dict(engine.hub.errors)) == ([], {})


def test_what_is_served_is_recorded(tmp_path: Path) -> None:
    engine = Engine(recorder=Recorder(tmp_path / "t.jsonl"))

    async def test(client: httpx.AsyncClient) -> None:
        tools = [{"type": "function", "function": {"name": "bash"}}]
        await client.post("/v1/chat/completions", json=chat(("user", "a task"), stream=True, tools=tools))
        await client.post("/v1/chat/completions", json=chat(("user", "a task"), fail=True))

    served(engine, test)
    (call,) = read_trace(tmp_path / "t.jsonl").calls
    assert (call.role, call.model, call.scaffold) == ("coder", "m", "generic")
    assert call.messages == (Message(role="user", content="a task"),)
    assert call.output.content == f"{engine.says} "
    assert call.tools[0]["function"]["name"] == "bash"


def test_a_request_has_the_secret_and_a_text_too_long_is_not_opened() -> None:
    engine = Engine(secret="secret:")
    for number, length in enumerate((10, 100_000)):
        body = chat(("system", "You are OpenHands agent"), ("tool", CAT + "x" * length), n=number)
        exchange = engine.hub.receive("/v1/chat/completions", {}, json.dumps(body).encode())
        assert exchange is not None
        assert exchange.key.startswith("secret:")
    assert engine.hub._jobs.qsize() == 1


def test_a_full_queue_leaves_files_out_and_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agspec.serve.hub.WAITING", 1)
    engine = Engine()
    for number in range(3):
        exchange = engine.hub.receive("/v1/chat/completions", {}, json.dumps(chat(("user", f"task {number}"))).encode())
        assert exchange is not None
    assert engine.hub.num_dropped_jobs == 2


def test_A5_metrics_and_the_time_to_calibrate_again(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine()
    registry = CollectorRegistry()
    registry.register(HubMetrics(engine.hub))
    assert registry.get_sample_value("agspec_propose_seconds_total") == 0

    async def run() -> None:
        task = asyncio.get_running_loop().create_task(engine.hub.watch(every_s=0.01))
        engine.hub.receive("/v1/chat/completions", {}, json.dumps(chat(("user", "a task"))).encode())
        await asyncio.sleep(0.1)
        task.cancel()

    asyncio.run(run())
    for name, labels, value in (
        ("agspec_drafts_by_source_total", {"source": "session"}, 3),
        ("agspec_accepted_tokens_by_role_total", {"role": "coder"}, 20),
        ("agspec_store_bytes", {"store": "session"}, 1000),
        ("agspec_evicted_tokens_total", {"store": "session"}, 5),
        ("agspec_links_total", {"how": "new"}, 1),
        ("agspec_errors_total", {"where": "draft"}, 1),
        ("agspec_drift", {}, 0.4),
        ("agspec_propose_seconds_total", {}, 0.5),
    ):
        assert registry.get_sample_value(name, labels) == value, name
    told = [record.message for record in caplog.records if "calibrate again" in record.message]
    assert told == ["agspec: 40% of the foretold tokens are accepted: calibrate again"]


# --- what became of a prediction -----------------------------------------------------------------------------------

PREDICTION = {"prediction": {"type": "content", "content": "an answer"}}
FATE = {"accepted_prediction_tokens": 9, "rejected_prediction_tokens": 3}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("usage", "details"),
    [
        ({"completion_tokens": 5}, FATE),
        ({"completion_tokens": 5, "completion_tokens_details": None}, FATE),
        ({"completion_tokens_details": {"reasoning_tokens": 2}}, {"reasoning_tokens": 2, **FATE}),
    ],
)
def test_usage_tells_what_became_of_a_prediction(stream: bool, usage: dict[str, Any], details: dict[str, int]) -> None:
    engine = Engine()
    body = chat(("user", "go"), stream=stream, usage=usage)

    def told(answer: httpx.Response) -> Any:
        if not stream:
            return answer.json()["usage"]
        lines = [line for line in answer.text.splitlines() if line]
        assert lines[-1] == "data: [DONE]"
        return json.loads(lines[-2].removeprefix("data: "))["usage"]

    async def test(client: httpx.AsyncClient) -> None:
        plain = await client.post("/v1/chat/completions", json=body)
        assert told(plain) == usage
        found = await client.post("/v1/chat/completions", json={**body, **PREDICTION})
        assert told(found) == {**usage, "completion_tokens_details": details}
        if stream:
            assert found.text.split("usage")[0] == plain.text.split("usage")[0], "all else comes as it was"

    served(engine, test)
    assert len(engine.named("agspec_prediction")) == 1
    assert engine.hub.errors == {}


def test_a_refused_request_and_one_without_usage_come_back_as_they_were() -> None:
    engine = Engine()

    async def test(client: httpx.AsyncClient) -> None:
        for body, status in ((chat(("user", "go"), fail=True), 400), (chat(("user", "go")), 200)):
            plain = await client.post("/v1/chat/completions", json=body)
            found = await client.post("/v1/chat/completions", json={**body, **PREDICTION})
            assert (found.status_code, found.json()) == (status, plain.json())

    served(engine, test)
