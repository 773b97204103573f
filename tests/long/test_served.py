"""A served engine in situations that take minutes: several ranks, a dead worker, a restart, a long conversation.

``make e2e`` runs these.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from agspec.serve.config import ServeConfig
from agspec.serve.process import Server
from agspec.settings import Settings

pytestmark = pytest.mark.long
FLAGS = ("--max-model-len", "2048", "--max-num-seqs", "4")
LINES = "\n".join(f"value_{i} = compute(value_{i}, {i})" for i in range(8))
ASK = [{"role": "user", "content": f"Write this file out again, whole:\n{LINES}"}]
KEYS = ("num_drafts", "num_draft_tokens", "num_accepted_tokens", "by_source", "by_role")


def say(server: Server, *, tokens: int = 80, **more: Any) -> str:
    body = {"model": "embedded", "messages": ASK, "temperature": 0, "max_tokens": tokens, **more}
    done = server.client.post("/v1/chat/completions", json=body).raise_for_status().json()
    text: str = done["choices"][0]["message"]["content"]
    return text


def test_ranks_of_one_engine_draft_alike(tmp_path: Path) -> None:
    flags = (*FLAGS, "--tensor-parallel-size", "3", "--dtype", "float32")
    loose = {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}  # three ranks on fewer than three nodes
    config = ServeConfig()
    with Server.with_agspec(
        tmp_path / "log", settings=Settings(strict=True), config=config, flags=flags, **loose
    ) as server:
        for _ in range(2):
            say(server)
        workers = server.client.get("/v1/agspec/stats").json()["workers"]
    assert len(workers) == 3
    first = {key: workers[0][key] for key in KEYS}
    assert first["num_accepted_tokens"] > 20
    assert [{key: worker[key] for key in KEYS} for worker in workers] == [first] * 3


def test_a_restart_finds_the_live_global_store_again(tmp_path: Path) -> None:
    settings = Settings(strict=True, state=tmp_path / "state", stores=("shared",))
    accepted = []
    for run in range(2):
        log = tmp_path / f"log{run}"
        with Server.with_agspec(log, settings=settings, config=ServeConfig(), flags=FLAGS) as server:
            text = say(server)
            accepted.append(server.stats()["by_source"].get("shared", {}).get("num_accepted_tokens", 0))
            assert say(server) == text
    assert accepted[0] < 10, "nothing was shared yet"
    assert accepted[1] > 40, "the same answer, known from the first run"


def test_a_killed_engine_ends_the_server_and_says_so(tmp_path: Path) -> None:
    """Nothing hangs: the request under way fails, the process ends, and what restarts it can do so."""
    log = tmp_path / "log"
    with Server.with_agspec(log, settings=Settings(), config=ServeConfig(), flags=FLAGS) as server:
        say(server, tokens=4)
        children = [int(pid) for pid in Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
                    .read_text().split()]  # fmt: skip
        engine = [pid for pid in children if "EngineCore" in Path(f"/proc/{pid}/comm").read_text()
                  or "EngineCore" in Path(f"/proc/{pid}/cmdline").read_text()]  # fmt: skip
        assert engine
        os.kill(engine[0], signal.SIGKILL)
        with pytest.raises(httpx.HTTPError):
            say(server)
        until = time.monotonic() + 60
        while server.process.poll() is None:
            assert time.monotonic() < until, "the server lives on without its engine"
            time.sleep(0.2)
    assert "EngineDead" in log.read_text() or "died" in log.read_text()


def test_a_conversation_of_two_hundred_turns_is_drafted_as_well_at_its_end(tmp_path: Path) -> None:
    """The window moves over a conversation that is never forgotten: acceptance holds, the drafter takes no longer."""
    settings = Settings(strict=True)
    rows = []
    with Server.with_agspec(tmp_path / "log", settings=settings, config=ServeConfig(), flags=FLAGS) as server:
        before = server.stats()
        for turn in range(200):
            filler = "\n".join(f"note_{turn}_{i} = {turn * i}" for i in range(6))
            say(server, tokens=24, messages=[{"role": "user", "content": f"{filler}\n{ASK[0]['content']}"}],
                user="u", session_id="one")  # fmt: skip
            if turn % 50 == 49:
                now = server.stats()
                steps = now["propose"]["num_steps"] - before["propose"]["num_steps"]
                spent = now["propose"]["seconds"] - before["propose"]["seconds"]
                rows.append((now["num_accepted_tokens"] - before["num_accepted_tokens"], 1000 * spent / steps))
                before = now
    accepted = [row[0] for row in rows]
    assert accepted[-1] >= 0.9 * accepted[1]
    assert rows[-1][1] < 3 * rows[1][1]
