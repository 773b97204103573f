"""``agspec serve`` on the real engine: requests over HTTP, as agents send them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agspec.serve.command import SHUTDOWN_S
from agspec.serve.process import Server
from tests.test_readme import ON_SERVER

pytestmark = pytest.mark.engine
LINES = "\n".join(f"value_{i} = compute(value_{i}, {i})" for i in range(8))
SYSTEM = {"role": "system", "content": "You are a helpful assistant that can interact with a computer."}
ASK = {"role": "user", "content": f"Write this file out again, whole:\n{LINES}"}


class Agent(Server):
    """A server whose client is an agent with the first key."""

    def post(self, path: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        done = self.client.post(path, json={"model": "embedded", **body}, **more)
        assert done.status_code == 200, done.text
        answer: dict[str, Any] = done.json()
        return answer

    def session(self, name: str) -> dict[str, Any] | None:
        return next((session for session in self.sessions() if session["session"] == name), None)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    line = [sys.executable, "-m", "agspec.cli", "serve", "embedded", "--max-model-len", "2048", "--max-num-seqs", "4",
            "--api-key", "mine", "theirs"]  # fmt: skip
    with Agent(line, {}, tmp_path_factory.mktemp("serve") / "log") as agent:
        agent.client.headers["authorization"] = "Bearer mine"
        yield agent


def test_a_conversation_is_one_session_and_is_drafted(server: Agent) -> None:
    messages = [SYSTEM, ASK]
    for _ in range(2):
        body = {"messages": messages, "temperature": 0, "max_tokens": 120}
        said = server.post("/v1/chat/completions", body)["choices"][0]["message"]
        messages = [*messages, {"role": "assistant", "content": said["content"]}, ASK]
    (session,) = server.sessions()
    assert (session["scaffold"], session["num_requests"]) == ("mini-swe-agent", 2)
    assert session["links"] == {"new": 1, "prefix": 1}
    stats = server.stats()
    assert stats["num_accepted_tokens"] > 20
    assert stats["by_role"].keys() == {"coder"}
    assert (stats["errors"], stats["num_parked"]) == ({}, 0)


def test_four_apis(server: Agent) -> None:
    before = server.stats()["num_accepted_tokens"]
    for path, body in (
        ("/v1/completions", {"prompt": f"{LINES}\n\n{LINES[:60]}", "max_tokens": 60, "temperature": 0}),
        ("/v1/responses", {"input": ASK["content"], "max_output_tokens": 60, "temperature": 0}),
        ("/v1/messages", {"messages": [ASK], "max_tokens": 60, "temperature": 0}),
    ):
        server.post(path, body, headers={"x-session-id": path})
        assert server.session(path)["num_requests"] == 1
    assert server.stats()["num_accepted_tokens"] > before


def test_G1_a_prediction_is_drafted(server: Agent) -> None:
    """The model's own answer, expected: nearly all of it is drafted and accepted, in a tenant that has seen nothing."""
    body = {"messages": [{"role": "user", "content": "Tell me about the sea."}], "temperature": 0, "max_tokens": 80}
    said = server.post("/v1/chat/completions", body)["choices"][0]["message"]["content"]
    before = server.stats()["by_source"]["aligned"]["num_accepted_tokens"]
    expecting = {**body, "prediction": {"type": "content", "content": said}}
    again = server.post("/v1/chat/completions", expecting, headers={"x-agspec-tenant": "new"})
    assert again["choices"][0]["message"]["content"] == said
    accepted = server.stats()["by_source"]["aligned"]["num_accepted_tokens"] - before
    assert accepted > 60
    details = again["usage"]["completion_tokens_details"]
    assert details["accepted_prediction_tokens"] == accepted
    assert 0 <= details["rejected_prediction_tokens"] <= 80 + 10 - accepted, "both are of the prediction's tokens"
    wrong = {**body, "prediction": {"type": "content", "content": "word " * 60}, "stream": True,
             "stream_options": {"include_usage": True}}  # fmt: skip
    with server.client.stream("POST", "/v1/chat/completions", json={"model": "embedded", **wrong}) as stream:
        lines = [line for line in stream.iter_lines() if line]
    usage = json.loads(lines[-2].removeprefix("data: "))["usage"]
    details = usage["completion_tokens_details"]
    assert details["accepted_prediction_tokens"] == 0
    assert 0 <= details["rejected_prediction_tokens"] <= 60 + 1, "of its own tokens, as many as were worth a try"
    assert usage["completion_tokens"] == 80


def test_every_route_of_ours_wants_the_key_and_shows_a_tenant_its_own(server: Agent) -> None:
    for method, path in (("GET", "stats"), ("GET", "sessions"), ("DELETE", "sessions/x")):
        refused = server.client.request(method, f"/v1/agspec/{path}", headers={"authorization": ""})
        assert refused.status_code == 401
    server.post("/v1/chat/completions", {"messages": [ASK], "max_tokens": 1}, headers={"x-session-id": "mine"})
    theirs = {"authorization": "Bearer theirs"}
    assert server.client.get("/v1/agspec/sessions", headers=theirs).json() == []
    assert server.client.delete("/v1/agspec/sessions/mine", headers=theirs).status_code == 404
    assert server.client.delete("/v1/agspec/sessions/mine").status_code == 200
    assert server.session("mine") is None


def agspec(*arguments: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "agspec.cli", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_G7_doctor(server: Agent) -> None:
    url = server.url
    done = agspec("doctor", f"{url}/v1", "--api-key", "mine")
    said = done.stdout.splitlines()
    assert [line.split()[0] for line in said] == ["ok", "fix", "ok", "ok"], done.stdout + done.stderr
    assert "2048 tokens are few" in said[1]
    assert re.fullmatch(r"ok   round trip: \d+ drafted tokens accepted", said[3])
    assert (done.returncode, done.stderr) == (1, "agspec: 1 to fix\n")
    for arguments, line in (
        ((url, "--api-key", "mine"), f"OpenAI clients want the base URL with /v1: {url}/v1"),
        ((f"{url}/v1", "--api-key", "wrong"), "give --api-key, and the same to the agent"),
        ((f"{url}/v1", "--api-key", "mine", "--model", "gpt-4"), "want one of embedded, got gpt-4"),
    ):
        assert line in agspec("doctor", *arguments).stdout
    assert "want a server that answers" in agspec("doctor", "http://127.0.0.1:9/v1").stderr


@pytest.mark.parametrize("line", ON_SERVER)
def test_commands_of_the_readme(line: str, server: Agent) -> None:
    words = line.replace("http://localhost:8000", server.url).split()
    done = agspec(*words[1:], "--api-key", "mine")
    if words[1] == "doctor":
        assert "drafted tokens accepted" in done.stdout
        return
    assert done.returncode == 0, done.stderr
    for word in ("session", "coder", "by role", "your sessions", "errors none"):
        assert word in done.stdout


def test_bad_requests_are_vllms_to_refuse(server: Agent) -> None:
    for content in (b"{", b"[]", b'{"model": "embedded", "messages": 3}', b"\xff"):
        headers = {"content-type": "application/json"}
        assert server.client.post("/v1/chat/completions", content=content, headers=headers).status_code in (400, 422)
    assert server.client.get("/v1/agspec/stats").json()["errors"] == {}


def test_a_prompt_of_five_megabytes_is_refused_and_the_server_goes_on(server: Agent) -> None:
    body = {"model": "embedded", "messages": [{"role": "user", "content": "x = 1\n" * 900_000}], "max_tokens": 1}
    done = server.client.post("/v1/chat/completions", json=body)
    assert (done.status_code, "2048" in done.text) == (400, True), done.text[:200]
    server.post("/v1/chat/completions", {"messages": [ASK], "max_tokens": 1})
    server.settle()
    assert server.stats()["errors"] == server.stats()["api_errors"] == {}


@pytest.mark.parametrize("field", [{"min_p": 0.1}, {"logit_bias": {"5": 1}}])
def test_D1_parameters_that_vllm_takes_only_without_drafts_are_a_400(server: Agent, field: dict[str, Any]) -> None:
    body = {"model": "embedded", "messages": [ASK], "max_tokens": 1, **field}
    done = server.client.post("/v1/chat/completions", json=body)
    assert (done.status_code, next(iter(field)) in done.text) == (400, True), "documented in README.md"
    server.post("/v1/chat/completions", {"messages": [ASK], "max_tokens": 1})


def opened(server: Agent, **more: Any) -> Any:
    body = {"model": "embedded", "messages": [SYSTEM, ASK], "stream": True, "max_tokens": 1500, "ignore_eos": True}
    return server.client.stream("POST", "/v1/chat/completions", json={**body, **more})


def test_a_client_that_leaves_ends_its_request(server: Agent) -> None:
    with opened(server) as stream:
        next(stream.iter_lines())
        assert server.runs(1, within_s=2)
    assert server.runs(0, within_s=2), "the request runs on"
    time.sleep(0.5)
    assert server.stats()["num_parked"] == 0, "its half output was forgotten"


def test_a_stream_comes_in_pieces(server: Agent) -> None:
    with opened(server, max_tokens=40) as stream:
        lines = [line for line in stream.iter_lines() if line.startswith("data: ")]
    assert lines[-1] == "data: [DONE]"
    pieces = [json.loads(line[6:])["choices"] for line in lines[:-1]]
    assert sum(bool(piece) for piece in pieces) > 5


def test_sigterm_with_an_open_stream_ends_in_time(server: Agent) -> None:
    with opened(server) as stream:
        next(stream.iter_lines())
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(SHUTDOWN_S + 20)
    assert "agspec is on" in server.log.read_text()
