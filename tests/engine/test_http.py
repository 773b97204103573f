"""A recorded session replayed over HTTP, its answers forced: roles told and tokens drafted as the simulator does."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from agspec.replay.methods import Agspec
from agspec.replay.plan import PlannedCall, Planner
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


def asked_before(call: PlannedCall) -> PlannedCall:
    """The same prompt in another session, for one token: the files it opens reach their store, as they do in time."""
    return replace(call, session=f"before {call.session}", tape=call.tape[:1])


def test_a_replay_over_http_drafts_as_the_simulator(tmp_path):
    tokenizer = load_tokenizer("embedded")
    trace = read_trace(data_dir("replays") / "aider-own.jsonl.gz")
    calls = [call.model_copy(update={"role": None}) for call in trace.calls][:2]
    planned = list(Planner(tokenizer, "json").calls(trace.model_copy(update={"calls": tuple(calls)})))
    assert len(planned) == len(calls)
    replayed = [one for plan in planned for one in (asked_before(plan), plan)]
    by_call: list[Counter[str]] = []
    replay(Agspec(SETTINGS, tokenizer), replayed, max_draft=24, by_call=by_call)
    told: list[tuple[int, int]] = []
    with TapedServer.with_agspec(tmp_path / "log", settings=SETTINGS, config=ServeConfig(), flags=FLAGS) as server:
        server.script([one.tape for one in replayed])
        last: Counter[str] = Counter()
        for i, plan in enumerate(replayed):
            messages = [{"role": message.role, "content": message.content} for message in calls[i // 2].messages]
            prompt = server.client.post("/tokenize", json={"model": "embedded", "messages": messages}).json()["tokens"]
            assert prompt == plan.prompt.tolist()
            body = {"model": "embedded", "messages": messages, "max_tokens": int(plan.tape.size), "temperature": 0}
            sent = server.client.post("/v1/chat/completions", json=body, headers={"X-Session-ID": plan.session})
            text = sent.raise_for_status().json()["choices"][0]["message"]["content"]
            assert text == tokenizer.decode(plan.tape[:-1] if i % 2 else plan.tape)
            server.settle()
            stats = server.stats()
            now = Counter({key: stats[key] for key in COUNTS})
            told.append((now["num_draft_tokens"] - last["num_draft_tokens"],
                         now["num_accepted_tokens"] - last["num_accepted_tokens"]))  # fmt: skip
            last = now
        sessions = server.sessions()
        roles = Counter(stats["by_role"].keys())
    assert {session["session"] for session in sessions} == {plan.session for plan in replayed}
    assert roles.keys() == {call.role for call in planned}
    assert (stats["errors"], stats["api_errors"]) == ({}, {})
    assert told == [(counts["num_draft_tokens"], counts["num_accepted_tokens"]) for counts in by_call]
