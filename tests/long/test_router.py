"""Two replicas behind vllm-router (PyPI), consistent hashing on the session's header."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from agspec.serve.config import ServeConfig
from agspec.serve.process import Server
from agspec.settings import Settings
from benchmarks.e2e.install import install
from tests.long.test_served import ASK, FLAGS

pytestmark = pytest.mark.long


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[tuple[httpx.Client, list[Server]]]:
    """A client of the router, and the two servers behind it."""
    home = install(("vllm-router",))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with ExitStack() as stack:
        servers = [
            stack.enter_context(
                Server.with_agspec(tmp_path / f"log{i}", settings=Settings(), config=ServeConfig(), flags=FLAGS)
            )
            for i in range(2)
        ]
        line = [
            str(home / "bin" / "vllm-router"), "--host", "127.0.0.1", "--port", str(port), "--policy",
            "consistent_hash", "--worker-urls", *(server.url for server in servers),
        ]  # fmt: skip
        router = stack.enter_context(subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT))
        stack.callback(router.terminate)
        client = stack.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300))
        until = time.monotonic() + 60
        while True:
            try:
                if client.get("/v1/models").status_code == 200:
                    break
            except httpx.TransportError:
                pass
            assert time.monotonic() < until, "the router does not answer"
            time.sleep(0.5)
        yield client, servers


def ask(client: httpx.Client, session: str) -> int:
    body = {"model": "embedded", "messages": ASK, "temperature": 0, "max_tokens": 24}
    return client.post("/v1/chat/completions", json=body, headers={"x-session-id": session}).status_code


def requests_of(server: Server) -> dict[str, int]:
    return {session["session"]: session["num_requests"] for session in server.sessions()}


def test_a_session_sticks_to_its_replica_and_goes_on_at_the_other(
    replicas: tuple[httpx.Client, list[Server]],
) -> None:
    client, servers = replicas
    names = [f"session-{i}" for i in range(6)]
    for _ in range(3):
        assert {ask(client, name) for name in names} == {200}
    seen = [requests_of(server) for server in servers]
    assert sorted([*seen[0], *seen[1]]) == names, "each at one replica"
    assert set(seen[0].values()) | set(seen[1].values()) == {3}
    assert all(server.stats()["num_accepted_tokens"] > 0 for server, told in zip(servers, seen, strict=True) if told)
    dying = 0 if seen[0] else 1
    moved = next(iter(seen[dying]))
    servers[dying].process.kill()
    servers[dying].process.wait()
    until = time.monotonic() + 120
    while ask(client, moved) != 200:
        assert time.monotonic() < until, "the session does not go on"
        time.sleep(1)
    assert requests_of(servers[1 - dying])[moved] >= 1
