"""The sessions that ship: as the manifest says, recognised, small, free of the clients' own prompt texts."""

from __future__ import annotations

import hashlib
import json
import tomllib
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from agspec.replay.importers import import_sources
from agspec.replay.trace import Call, Trace, read_trace
from agspec.resources import data_dir
from agspec.scaffold import load_profiles

ROOT = Path(__file__).resolve().parents[1]
REPLAYS = data_dir("replays")
ENTRIES: list[dict[str, Any]] = tomllib.loads((REPLAYS / "MANIFEST.toml").read_text("utf-8"))["replay"]
ROLES = {
    "aider-own.jsonl.gz": ("aider", {"coder", "committer"}),
    "mini-swe-agent-own.jsonl.gz": ("mini-swe-agent", {"coder"}),
}
CLIENTS_WORDS = (
    "Always use best practices",
    "ONLY EVER RETURN CODE",
    "mathweb/flask",
    "I switched to a new code base",
    "Trust this message",
    "Ensure the commit message",
    "Recommended Workflow",
    "CRITICAL",
    "CORRECT response",
    "system_information",
)
"""Out of the clients' prompts as they send them: none of it may ship."""
MAX_SYSTEM_CHARS = 200
MAX_PROMPT_CHARS = 20_000
"""About 6,000 tokens of the embedded model, whose window is 8,192."""
MAX_TOTAL_BYTES = 200_000


@pytest.fixture(params=ENTRIES, ids=lambda entry: entry["file"])
def entry(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


@pytest.fixture
def trace(entry: dict[str, Any]) -> Trace:
    return read_trace(REPLAYS / entry["file"])


def roles(call: Call) -> tuple[str, str]:
    match = load_profiles().classify(call.messages, tools=[tool["function"]["name"] for tool in call.tools])
    return match.scaffold.name, match.role


def test_manifest_names_every_file() -> None:
    listed = [entry["file"] for entry in ENTRIES]
    assert sorted(listed) == sorted(path.name for path in REPLAYS.glob("*.jsonl*")) == sorted(ROLES)
    assert sum((REPLAYS / name).stat().st_size for name in listed) < MAX_TOTAL_BYTES


def test_manifest_agrees_with_the_file(entry: dict[str, Any], trace: Trace) -> None:
    assert hashlib.sha256((REPLAYS / entry["file"]).read_bytes()).hexdigest() == entry["sha256"]
    assert (len(trace.sessions), len(trace.calls)) == (entry["sessions"], entry["calls"])
    assert entry["licence"] == "Apache-2.0"
    assert all(entry[key] for key in ("title", "origin", "client", "date", "cut"))


def test_scaffold_and_role_are_recognised(entry: dict[str, Any], trace: Trace) -> None:
    scaffold, wanted = ROLES[entry["file"]]
    found = [roles(call) for call in trace.calls]
    assert {name for name, _ in found} == {scaffold}
    assert {role for _, role in found} == wanted


def test_sessions_open_files(trace: Trace) -> None:
    for calls in trace.sessions.values():
        scaffold = load_profiles().classify(calls[-1].messages).scaffold
        opened = [file for call in calls for message in call.messages for file in scaffold.opened_files(message)]
        assert opened


def test_prompts_are_short_and_outputs_are_there(trace: Trace) -> None:
    for call in trace.calls:
        assert call.output.content or call.output.tool_calls
        systems = [message.content for message in call.messages if message.role == "system"]
        assert len(systems) == 1
        assert 0 < len(systems[0]) <= MAX_SYSTEM_CHARS
        prompt = [message.content + "".join(c.arguments for c in message.tool_calls) for message in call.messages]
        assert sum(map(len, prompt)) < MAX_PROMPT_CHARS


def test_no_prompt_text_of_the_clients_and_no_private_folder(trace: Trace) -> None:
    for call in trace.calls:
        text = call.model_dump_json()
        assert not [words for words in CLIENTS_WORDS if words in text]
        for name in ("/root/", "/home/", "/work/"):
            assert name not in text


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules of benchmarks/record, which is no installed package."""
    if not (ROOT / "benchmarks" / "record").is_dir():
        pytest.skip("the recorder is in the repository only")
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.record import script, server

    return script, server


def test_outputs_are_those_of_the_scripts(record: Any, trace: Trace) -> None:
    script, _ = record
    scripts = [script.read_script(ROOT / source) for source in trace.sources]
    answers = [answer for found in scripts for answer in found.answers()]
    assert [call.output.content for call in trace.calls] == [answer.content for answer in answers]
    calls = [tuple((c.name, json.loads(c.arguments)) for c in call.output.tool_calls) for call in trace.calls]
    assert calls == [answer.tool_calls for answer in answers]


def post(url: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def test_scripted_server(record: Any, tmp_path: Path) -> None:
    _, server = record
    answers = [server.Answer("Look: é\n" * 9), server.Answer("Run.", (("bash", {"command": "ls"}),))]
    ask = {"model": "scripted", "messages": [{"role": "user", "content": "go"}]}
    lines = tmp_path / "lines.jsonl"
    with server.ScriptedServer(answers, lines, "s") as running:
        url = f"{running.base_url}/chat/completions"
        with urllib.request.urlopen(f"{running.base_url}/models", timeout=30) as models:
            assert json.load(models)["data"][0]["id"] == "scripted"
        streamed = post(url, {**ask, "stream": True}).split("\n\n")
        plain = json.loads(post(url, ask))
        with pytest.raises(urllib.error.HTTPError):
            post(url, ask)
    assert streamed[-2:] == ["data: [DONE]", ""]
    deltas = [json.loads(line.removeprefix("data: "))["choices"][0]["delta"] for line in streamed[:-2]]
    assert "".join(delta.get("content", "") for delta in deltas) == answers[0].content
    assert plain["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"command": "ls"}'
    assert (running.num_answered, running.unanswered) == (2, 1)
    recorded, _ = import_sources("openai", [lines], name="lines")
    assert [call.output.content for call in recorded.calls] == [answer.content for answer in answers]
    assert list(recorded.sessions) == ["s"]
