"""A recorded session replayed over HTTP, its answers forced: linked, told apart and drafted as the simulator does."""

from __future__ import annotations

from collections import Counter

import pytest

from agspec.replay.methods import Agspec
from agspec.replay.plan import Planner
from agspec.replay.simulate import replay
from agspec.replay.trace import read_trace
from agspec.resources import data_dir
from agspec.serve.config import ServeConfig
from agspec.settings import Settings
from agspec.tokens import load_tokenizer
from benchmarks.e2e.server import TapedServer

pytestmark = pytest.mark.engine

SETTINGS = Settings(cost_ratio=0.07, max_draft=24, strict=True)
FLAGS = ("--max-model-len", "8192", "--max-num-seqs", "2")
COUNTS = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")


def test_a_replay_over_http_drafts_as_the_simulator(tmp_path):
    tokenizer = load_tokenizer("embedded")
    trace = read_trace(data_dir("replays") / "aider-own.jsonl.gz")
    calls = [call.model_copy(update={"role": None}) for call in trace.calls][:2]
    planned = list(Planner(tokenizer, "json").calls(trace.model_copy(update={"calls": tuple(calls)})))
    assert len(planned) == len(calls)
    by_call: list[Counter[str]] = []
    replay(Agspec(SETTINGS, tokenizer), planned, max_draft=24, by_call=by_call)
    told: list[tuple[int, int]] = []
    with TapedServer.with_agspec(tmp_path / "log", settings=SETTINGS, config=ServeConfig(), flags=FLAGS) as server:
        server.script([call.tape for call in planned])
        last: Counter[str] = Counter()
        for call, plan in zip(calls, planned, strict=True):
            messages = [{"role": message.role, "content": message.content} for message in call.messages]
            prompt = server.client.post("/tokenize", json={"model": "embedded", "messages": messages}).json()["tokens"]
            assert prompt == plan.prompt.tolist()
            body = {"model": "embedded", "messages": messages, "max_tokens": int(plan.tape.size), "temperature": 0}
            done = server.client.post("/v1/chat/completions", json=body).raise_for_status().json()
            assert done["choices"][0]["message"]["content"] == tokenizer.decode(plan.tape[:-1])
            stats = server.stats()
            now = Counter({key: stats[key] for key in COUNTS})
            told.append((now["num_draft_tokens"] - last["num_draft_tokens"],
                         now["num_accepted_tokens"] - last["num_accepted_tokens"]))  # fmt: skip
            last = now
        sessions = server.sessions()
        roles = Counter(stats["by_role"].keys())
    assert len(sessions) == len({call.session for call in calls})
    assert roles.keys() == {call.role for call in planned}
    assert (stats["errors"], stats["api_errors"]) == ({}, {})
    want = [(counts["num_draft_tokens"], counts["num_accepted_tokens"]) for counts in by_call]
    assert told[0] == want[0], "drafted and accepted, to the token"
    for got, expected in zip(told, want, strict=True):
        assert got == pytest.approx(expected, rel=0.02), "a file may reach its store a step later than in the simulator"
