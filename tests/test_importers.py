from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import git
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from agspec.commands.import_ import import_command
from agspec.errors import AgspecError, RecordError, SettingsError
from agspec.replay.importers import EDIT_FORMATS, KINDS, import_sources
from agspec.replay.importers.edits import apply, blocks
from agspec.replay.trace import Call, Message, Trace, read_trace, write_trace
from tests.support import SHARED, needs_shared

TRACES = SHARED / "traces"


def jsonl(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def read(kind: str, *sources: Path, **options: Any) -> Trace:
    trace, skipped = import_sources(kind, sources, name="t", **options)
    assert skipped == []
    return trace


def counts(trace: Trace) -> tuple[int, int]:
    return len(trace.sessions), len(trace.calls)


def roles(call: Call) -> list[str]:
    return [message.role for message in call.messages]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(import_command, [str(argument) for argument in arguments])


# --- samples of each format, written for these tests -------------------------------------------------------------

BASH = {"type": "function", "function": {"name": "bash", "arguments": '{"command": "ls\\n"}'}}
MINI: dict[str, Any] = {
    "instance_id": "fix-1",
    "info": {"config": {"model": {"model_name": "m-1"}}},
    "messages": [
        {"role": "system", "content": "sys\r\n"},
        {"role": "user", "content": "do it"},
        {"role": "assistant", "content": None, "tool_calls": [BASH], "reasoning_content": "hm"},
        {"role": "tool", "content": "a.py\r\nb.py", "tool_call_id": "1"},
        {"role": "assistant", "content": "```mswea_bash_command\nls\n```"},
        {"role": "exit", "content": "bye"},
    ],
}
AIDER = (
    "TO LLM 2025-01-02T03:04:05\n-------\nSYSTEM Act.\nSYSTEM \n-------\nUSER -------\nUSER   x = 1\n"
    "-------\nASSISTANT Ok.\n-------\nUSER Change it\n"
    "LLM RESPONSE 2025-01-02T03:04:09\nASSISTANT Done:\nASSISTANT \nASSISTANT x = 2\n"
    "TO LLM 2025-01-02T03:05:05\n-------\nSYSTEM type: text\nSYSTEM text: One\ntwo\n\nthree\n"
    "SYSTEM cache_control: {'type': 'ephemeral'}\n-------\nUSER Again\n"
    "LLM RESPONSE 2025-01-02T03:05:09\nASSISTANT No.\n"
    "TO LLM 2025-01-02T03:06:05\n-------\nUSER Interrupted\nLLM RESPONSE 2025-01-02T03:06:09\n\n"
    "TO LLM 2025-01-02T03:07:05\n-------\nUSER Never answered\n"
)
SWE: dict[str, Any] = {
    "replay_config": {
        "agent": {
            "model": {"name": "m-2"},
            "history_processors": [{"type": "last_n_observations", "n": 2}],
        }
    },
    "history": [
        {"role": "system", "content": "sys", "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": "demo", "agent": "main", "is_demo": True, "message_type": "demonstration"},
        {"role": "assistant", "content": "shown", "agent": "main", "is_demo": True},
        {"role": "user", "content": "task", "agent": "main", "message_type": "observation"},
        *(
            item
            for step in range(4)
            for item in (
                {"role": "assistant", "content": f"step {step}", "agent": "main", "message_type": "action"},
                {"role": "tool", "content": f"saw {step}\nmore", "agent": "main", "message_type": "observation"},
            )
        ),
    ],
}
OPENAI: list[dict[str, Any]] = [
    {
        "request": {
            "model": "m-3",
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "a\r\n"}, {"type": "text", "text": "b"}]},
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]},
                {"role": "assistant", "content": None, "tool_calls": [BASH]},
                {"role": "tool", "content": "no newline", "tool_call_id": "1"},
            ],
            "tools": [{"type": "function", "function": {"name": "bash"}}],
        },
        "response": {"choices": [{"message": {"role": "assistant", "content": "é\u2028", "reasoning": "r"}}]},
        "session": "s",
    },
    {
        "request": {"messages": [{"role": "user", "content": "q"}], "user": "u7"},
        "response": {"model": "m-4", "choices": [{"message": {"content": None, "tool_calls": [BASH]}}]},
    },
]
SDK: dict[str, Any] = {
    "messages": [{"role": "user", "content": "converted"}],
    "raw_messages": [{"role": "user", "content": "before conversion"}],
    "tools": [{"type": "function", "function": {"name": "bash"}}],
    "kwargs": {},
    "timestamp": 2.0,
    "response": {"model": "m-5", "choices": [{"message": {"content": "", "tool_calls": [BASH]}}]},
    "raw_response": {"choices": [{"message": {"content": "<function=bash>\n", "tool_calls": None}}]},
}
LOG_PAIRS = {
    "A/test_x/prompt_001.log": "\n\n----------\n\nsys\n\n----------\n\ndo it\n",
    "A/test_x/response_001.log": "I will.\n\n<run>\nls\n",
    "A/test_x/prompt_002.log": "sys\r\n\r\n----------\r\n\r\ndo it\r\n\r\n----------\r\n\r\n"
    "I will.\r\n<run>\r\nls\r\n</run>\r\n\r\n----------\r\n\r\nOBSERVATION:\r\na\r\n\r\n----------\r\n",
    "A/test_x/response_002.log": "Done.",
    "A/test_x/prompt_003.log": "never answered",
}


def write_mini(folder: Path) -> Path:
    path = folder / "fix.traj.json.gz"
    path.write_bytes(gzip.compress(json.dumps(MINI).encode()))
    return path


def write_aider(folder: Path) -> Path:
    path = folder / ".aider.llm.history"
    path.write_text(AIDER)
    return path


def write_swe(folder: Path) -> Path:
    path = folder / "fix.traj"
    path.write_text(json.dumps(SWE))
    return path


def write_openai(folder: Path) -> Path:
    path = folder / "log.jsonl"
    path.write_bytes(jsonl(*OPENAI))
    return path


def write_openhands(folder: Path) -> Path:
    for name, text in LOG_PAIRS.items():
        path = folder / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder / "logs"


def write_claude_code(folder: Path) -> Path:
    path = folder / "session.jsonl"
    said = {"id": "m1", "model": "m", "content": [{"type": "text", "text": "Hi."}]}
    path.write_bytes(jsonl({"type": "user", "message": {"content": "hello"}}, {"type": "assistant", "message": said}))
    return path


def write_codex(folder: Path) -> Path:
    path = folder / "rollout-1.jsonl"
    items = ({"role": role, "content": [{"text": text}]} for role, text in (("user", "hello"), ("assistant", "Hi.")))
    path.write_bytes(jsonl(*({"type": "response_item", "payload": {"type": "message", **item}} for item in items)))
    return path


def write_repo(folder: Path) -> Path:
    path = folder / "repo"
    with git.Repo.init(path) as repo, repo.config_writer() as config:
        config.set_value("user", "name", "T").set_value("user", "email", "t@example.com")
    return path


def commit(path: Path, message: str, files: dict[str, bytes | None]) -> None:
    with git.Repo(path) as repo:
        for name, data in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            if data is None:
                (path / name).unlink()
            else:
                (path / name).write_bytes(data)
        repo.git.add("-A")
        repo.git.commit("-m", message)


def write_git(folder: Path) -> Path:
    path = write_repo(folder)
    commit(path, "Add it", {"a.py": b"def f():\n    return 1\n"})
    commit(path, "Change it\n\nBecause.", {"a.py": b"def f():\n    return 2\n"})
    return path


HALF = gzip.compress(b"{}" * 99, mtime=0)[:-9]
WRITERS: dict[str, Callable[[Path], Path]] = {
    "mini-swe-agent": write_mini,
    "aider": write_aider,
    "swe-agent": write_swe,
    "openhands": write_openhands,
    "claude-code": write_claude_code,
    "codex": write_codex,
    "openai": write_openai,
    "git": write_git,
}


def test_every_kind_has_a_sample() -> None:
    assert set(WRITERS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_round_trip(kind: str, suffix: str, tmp_path: Path) -> None:
    trace = read(kind, WRITERS[kind](tmp_path))
    write_trace(trace, tmp_path / f"t{suffix}")
    assert read_trace(tmp_path / f"t{suffix}") == trace


# --- each format ---------------------------------------------------------------------------------------------------


def test_mini_swe_agent(tmp_path: Path) -> None:
    write_mini(tmp_path)
    trace = read("mini-swe-agent", tmp_path)
    first, second = trace.calls
    assert (first.session, first.model, first.scaffold, first.role) == ("fix-1", "m-1", "mini-swe-agent", None)
    assert [message.content for message in first.messages] == ["sys\r\n", "do it"]
    assert first.output.reasoning == "hm"
    assert [(call.name, call.arguments) for call in first.output.tool_calls] == [("bash", '{"command": "ls\\n"}')]
    assert roles(second) == ["system", "user", "assistant", "tool"]
    assert second.messages[2] == Message(role="assistant", tool_calls=first.output.tool_calls)
    assert second.output.content == "```mswea_bash_command\nls\n```"


def test_runs_of_one_task_are_sessions_of_their_own(tmp_path: Path) -> None:
    path = write_mini(tmp_path)
    assert list(read("mini-swe-agent", path, path).sessions) == ["fix-1", "fix-1#2"]


def test_aider(tmp_path: Path) -> None:
    first, second = read("aider", write_aider(tmp_path)).calls
    assert [(m.role, m.content) for m in first.messages] == [
        ("system", "Act.\n"),
        ("user", "-------\n  x = 1"),
        ("assistant", "Ok."),
        ("user", "Change it"),
    ]
    assert first.output.content == "Done:\n\nx = 2"
    assert [m.content for m in second.messages] == ["One\ntwo\n\nthree", "Again"]
    assert first.session == second.session == "aider.llm.history"
    assert (first.model, first.scaffold) == (None, "aider")


def test_aider_log_with_crlf(tmp_path: Path) -> None:
    crlf = tmp_path / "x.aider.llm.history"
    crlf.write_bytes(AIDER.replace("\n", "\r\n").encode())
    assert [c.output for c in read("aider", crlf).calls] == [
        c.output for c in read("aider", write_aider(tmp_path)).calls
    ]


def test_swe_agent_elides_as_configured(tmp_path: Path) -> None:
    calls = read("swe-agent", write_swe(tmp_path)).calls
    assert [call.output.content for call in calls] == ["step 0", "step 1", "step 2", "step 3"]
    assert [m.content for m in calls[0].messages] == ["sys", "demo", "shown", "task"]
    observed = [m.content for m in calls[3].messages if m.role == "tool"]
    assert observed == ["Old environment output: (2 lines omitted)", "saw 1\nmore", "saw 2\nmore"]
    assert calls[3].messages[3].content == "task"
    assert {call.model for call in calls} == {"m-2"}


def test_swe_agent_0_7_elides_all_but_five(tmp_path: Path) -> None:
    history: list[dict[str, Any]] = [{"role": "user", "content": "task", "agent": "primary"}]
    for step in range(7):
        history.append({"role": "assistant", "content": f"step {step}", "agent": "primary"})
        history.append({"role": "user", "content": f"saw {step}", "agent": "primary"})
    (tmp_path / "old.traj").write_text(json.dumps({"history": history}))
    last = read("swe-agent", tmp_path / "old.traj").calls[-1]
    users = [m.content for m in last.messages if m.role == "user"]
    assert users == ["task", "Old output omitted (1 lines)", *(f"saw {step}" for step in range(1, 6))]
    (tmp_path / "args.yaml").write_text("agent:\n  config:\n    history_processors: []\n")
    whole = read("swe-agent", tmp_path / "old.traj").calls[-1]
    assert [m.content for m in whole.messages if m.role == "user"] == ["task", *(f"saw {step}" for step in range(6))]


def test_swe_agent_prefers_the_recorded_query(tmp_path: Path) -> None:
    action = {"role": "assistant", "content": "b", "tool_calls": [BASH]}
    prompt = [{"role": "user", "content": "exactly this"}]
    trajectory = {
        "history": [{"role": "user", "content": "task"}, action],
        "trajectory": [
            {"query": prompt, "response": "badly formed"},
            {"query": [*prompt, {"role": "user", "content": "again"}], "response": "b"},
            {"query": [{}], "response": ""},
        ],
    }
    (tmp_path / "q.traj").write_text(json.dumps(trajectory))
    first, second = read("swe-agent", tmp_path / "q.traj").calls
    assert [m.content for m in first.messages] == ["exactly this"]
    assert (first.output.content, first.output.tool_calls) == ("badly formed", ())
    assert [call.name for call in second.output.tool_calls] == ["bash"]


def test_openai(tmp_path: Path) -> None:
    first, second = read("openai", write_openai(tmp_path)).calls
    assert [m.content for m in first.messages] == ["a\r\nb", "", "", "no newline"]
    assert first.messages[2].tool_calls == second.output.tool_calls
    assert (first.output.content, first.output.reasoning) == ("é\u2028", "r")
    assert (first.session, second.session) == ("s", "log:u7")
    assert (first.model, second.model) == ("m-3", "m-4")
    assert first.tools == ({"type": "function", "function": {"name": "bash"}},)
    assert (first.scaffold, first.role) == (None, None)


def test_openhands_pairs(tmp_path: Path) -> None:
    first, second = read("openhands", write_openhands(tmp_path)).calls
    assert first.session == "A/test_x"
    assert [(m.role, m.content) for m in first.messages] == [("system", "sys"), ("user", "do it\n")]
    assert first.output.content == "I will.\n\n<run>\nls\n"
    assert roles(second) == ["system", "user", "assistant", "user"]
    assert [m.content for m in second.messages][2:] == ["I will.\r\n<run>\r\nls\r\n</run>", "OBSERVATION:\r\na"]
    assert second.output.content == "Done."


def test_openhands_archive_and_single_files(tmp_path: Path) -> None:
    folder = write_openhands(tmp_path)
    with tarfile.open(tmp_path / "logs.tar.gz", "w:gz") as archive:
        archive.add(folder, "logs")
    expected = read("openhands", folder).calls
    assert read("openhands", tmp_path / "logs.tar.gz").calls == expected
    assert read("openhands", *folder.rglob("*.log")).calls == expected


def test_openhands_sdk_logs(tmp_path: Path) -> None:
    lost = {**SDK, "timestamp": 1.0, "raw_response": {"choices": [{"message": {"content": "", "tool_calls": [{}]}}]}}
    native = {**SDK, "timestamp": 3.0, "raw_response": None}
    for name, log in {"a.json": native, "b.json": SDK, "c.json": lost}.items():
        (tmp_path / name).write_text(json.dumps(log))
    (tmp_path / "some-llm-message.json").write_text("[]")
    first, second, third = read("openhands", tmp_path).calls
    assert [call.name for call in first.output.tool_calls] == ["bash"]
    assert second.output.content == "<function=bash>\n"
    assert [m.content for m in second.messages] == ["converted"]
    assert (len(second.tools), len(third.tools)) == (0, 1)
    assert {call.session for call in (first, second, third)} == {tmp_path.name}


# --- git -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    path = write_repo(tmp_path)
    body = b"".join(b"    x%d = %d\r\n" % (n, n) for n in range(40))
    commit(path, "Start", {"a.py": b"def f():\r\n" + body, "logo.png": b"\0\1", "b.md": b"```\nold"})
    changed = body.replace(b"x3 = 3\r", b"x3 = 33\r").replace(b"x30 = 30\r", b"x30 = 300\r")
    commit(path, "Change x3, x30", {"a.py": b"def f():\r\n" + changed, "b.md": b"```\nnew", "c.txt": "é\n".encode()})
    commit(path, "Only remove", {"c.txt": None})
    return path


@pytest.mark.parametrize("edit_format", EDIT_FORMATS)
def test_git_prompt(edit_format: str, repo: Path) -> None:
    start, change = read("git", repo, edit_format=edit_format).calls
    assert {call.session for call in (start, change)} == {"repo"}
    assert (start.role, roles(start)) == ("coder", ["system", "user"])
    assert roles(change) == ["system", "user", "assistant", "user"]
    assert change.messages[-1].content == "Change x3, x30"
    assert "\na.py\n````\ndef f():\r\n    x0 = 0\r\n" in change.messages[1].content
    assert "\nb.md\n````\n```\nold````\n" in change.messages[1].content
    assert "logo.png" not in str(start)


def test_git_search_replace(repo: Path) -> None:
    content = read("git", repo).calls[1].output.content
    assert content.startswith(
        "a.py\n```python\n<<<<<<< SEARCH\n"
        "    x1 = 1\r\n    x2 = 2\r\n    x3 = 3\r\n    x4 = 4\r\n    x5 = 5\r\n=======\n"
        "    x1 = 1\r\n    x2 = 2\r\n    x3 = 33\r\n    x4 = 4\r\n    x5 = 5\r\n>>>>>>> REPLACE\n```\n\n"
        "a.py\n```python\n"
    )
    assert content.endswith(
        "b.md\n````markdown\n<<<<<<< SEARCH\n```\nold\n=======\n```\nnew\n>>>>>>> REPLACE\n````\n\n"
        "c.txt\n```\n<<<<<<< SEARCH\n=======\né\n>>>>>>> REPLACE\n```"
    )


def test_git_udiff(repo: Path) -> None:
    content = read("git", repo, edit_format="udiff").calls[1].output.content
    assert content.startswith(
        "```diff\n--- a.py\n+++ a.py\n@@ ... @@\n"
        "     x1 = 1\r\n     x2 = 2\r\n-    x3 = 3\r\n+    x3 = 33\r\n     x4 = 4\r\n"
    )
    assert content.endswith("```diff\n--- /dev/null\n+++ c.txt\n@@ ... @@\n+é\n```")


def test_git_whole(repo: Path) -> None:
    content = read("git", repo, edit_format="whole").calls[1].output.content
    assert content.startswith("a.py\n```\ndef f():\r\n    x0 = 0\r\n")
    assert content.endswith("b.md\n````\n```\nnew\n````\n\nc.txt\n```\né\n```")


def test_git_str_replace(repo: Path) -> None:
    call = read("git", repo, edit_format="str-replace").calls[1]
    arguments = [json.loads(tool_call.arguments) for tool_call in call.output.tool_calls]
    assert [(a["command"], a["path"]) for a in arguments] == [
        ("str_replace", "a.py"),
        ("str_replace", "a.py"),
        ("str_replace", "b.md"),
        ("create", "c.txt"),
    ]
    assert arguments[0]["old_str"].startswith("    x1 = 1\r\n")
    assert (arguments[2]["old_str"], arguments[2]["new_str"]) == ("```\nold", "```\nnew")
    assert arguments[3]["file_text"] == "é\n"
    assert '"é\\n"' in call.output.tool_calls[3].arguments
    assert (call.scaffold, len(call.tools)) == (None, 1)


def test_git_takes_the_newest_commits_and_no_merges(tmp_path: Path) -> None:
    path = write_git(tmp_path)
    assert [c.messages[-1].content for c in read("git", path, max_commits=1).calls] == ["Change it\n\nBecause."]
    with git.Repo(path) as repo:
        main = repo.active_branch.name
        repo.git.checkout("-q", "-b", "side", "HEAD~1")
    commit(path, "Aside", {"b.py": b"b\n"})
    with git.Repo(path) as repo:
        repo.git.checkout("-q", main)
        repo.git.merge("-q", "--no-ff", "-m", "Merge", "side")
    requests = [c.messages[-1].content for c in read("git", path).calls]
    assert requests[0] == "Add it"
    assert sorted(requests) == ["Add it", "Aside", "Change it\n\nBecause."]


def test_git_leaves_out_what_is_too_large(tmp_path: Path) -> None:
    path = write_git(tmp_path)
    commit(path, "Large file", {"big.txt": b"x" * 200_000, "small.txt": b"x\n"})
    commit(path, "Many files", {f"{n}.txt": b"%d\n" % n for n in range(20)})
    calls = read("git", path).calls
    assert len(calls) == 3
    assert calls[-1].output.content.startswith("small.txt")


def test_git_rename_and_link(tmp_path: Path) -> None:
    path = write_git(tmp_path)
    (path / "link.py").symlink_to("b.py")
    commit(path, "Rename", {"b.py": (path / "a.py").read_bytes(), "a.py": None})
    call = read("git", path, edit_format="whole").calls[-1]
    assert "\na.py\n" in call.messages[1].content
    assert call.output.content == "b.py\n```\ndef f():\n    return 2\n```"


LINE = st.sampled_from(["a\n", "b\n", "\n", "c\r\n", "d"])


@given(st.lists(LINE, max_size=12).map("".join), st.lists(LINE, max_size=12).map("".join))
def test_blocks_turn_old_into_new(old: str, new: str) -> None:
    if old != new:
        assert apply(old, blocks(old, new)) == new


# --- broken and foreign input -------------------------------------------------------------------------------------

WITHOUT_MESSAGES = {"request": {"messages": []}, "response": {}}
FAILED = {"request": OPENAI[1]["request"], "response": {"error": {"message": "overloaded"}}}
UNANSWERED = {"request": OPENAI[1]["request"], "response": None}
BROKEN: list[tuple[str, str, bytes, str]] = [
    *((kind, name, b"", "record 1: want ") for kind, name in [
        ("mini-swe-agent", "x.traj.json"), ("aider", "x.history"), ("swe-agent", "x.traj"), ("openhands", "x.json"),
        ("openai", "x.jsonl"), ("git", "x")]),
    *((kind, name, HALF, "record 1: want a whole gzip file, got a") for kind, name in [
        ("mini-swe-agent", "x.traj.json.gz"), ("aider", "x.history.gz"), ("swe-agent", "x.traj.gz"),
        ("openhands", "x.tar.gz"), ("openai", "x.jsonl.gz")]),
    *((kind, name, b"\x1f\x8b\x08\0\0\0\0\0\0\0garbage", "record 1: want a whole gzip file") for kind, name in [
        ("mini-swe-agent", "x.traj.json"), ("openai", "x.jsonl")]),
    *((kind, name, b'[{"a": 1}]\n', "record 1: want a JSON object, got a list") for kind, name in [
        ("mini-swe-agent", "x.traj.json"), ("swe-agent", "x.traj"), ("openhands", "x.json"), ("openai", "x.jsonl")]),
    *((kind, name, b"\xff\xfe\0\1", "record 1: want ") for kind, name in [
        ("mini-swe-agent", "x.traj.json"), ("aider", "x.history"), ("swe-agent", "x.traj"), ("openhands", "x.json"),
        ("openai", "x.jsonl"), ("git", "x")]),
    *((kind, name, b'{"foreign": "\\ud800"}', "record 1: want a JSON object, got b'") for kind, name in [
        ("mini-swe-agent", "x.traj.json"), ("openai", "x.jsonl")]),
    ("mini-swe-agent", "x.traj.json", b'{"history": []}', "record 1: messages: want a list, got nothing"),
    ("mini-swe-agent", "x.traj.json", b'{"messages": []}', "record 1: want at least one assistant message, got none"),
    ("mini-swe-agent", "x.traj.json", b'{"messages": [{"role": "user", "content": "q"}, {"role": 1}]}',
     "record 2: role: want text, got int"),
    ("mini-swe-agent", "x.traj.json", b'{"messages": [{"role": "assistant", "content": 7}]}',
     "record 1: content: want text or a list of parts, got int"),
    ("mini-swe-agent", "x.traj.json",
     b'{"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "b"}}]}]}',
     "record 1: function.arguments: want text, got nothing"),
    ("aider", "x.history", b"# aider chat started at 2025\n", "record 1: want a line TO LLM <time>, got '# aider"),
    ("aider", "x.history", AIDER.replace("USER Again", "Again").encode(), "record 2: line 25: want a role"),
    ("aider", "x.history", b"LLM RESPONSE 2025-01-02T03:04:09\nASSISTANT Done\n", "record 1: line 1: want a request"),
    ("aider", "x.history", AIDER.encode().replace(b"x = 2", b"\xff"),
     "record 1: want UTF-8 text, got byte 0xff in line 15"),
    ("swe-agent", "x.traj", json.dumps(MINI).encode(), "record 1: history: want a list, got nothing"),
    ("swe-agent", "x.traj", b'{"history": [{"role": "system"}, "x"]}',
     "record 2: message: want a JSON object, got text"),
    ("swe-agent", "x.traj", b'{"history": [], "replay_config": {"agent": {"history_processor":'
     b' {"type": "last_n_observations", "n": "5"}}}}',
     "record replay_config: want n and polling of 1 or more, got '5'"),
    ("swe-agent", "x.traj", b'{"history": [{"role": "assistant", "content": "a"}], "trajectory": 5}',
     "record 1: trajectory: want a list, got int"),
    ("openhands", "x.json", b'{"messages": [{"role": "user"}]}', "record 1: response: want a JSON object, got nothing"),
    ("openhands", "prompt_001.log", b"\xff", "want at least one openhands call"),
    ("openhands", "response_002.log", b"x", "record 2: want prompt_002.log beside it, got none"),
    ("openai", "x.jsonl", jsonl(*OPENAI) + b"{", "record 3: want a JSON object, got b'{'"),
    ("openai", "x.jsonl", jsonl(OPENAI[0], WITHOUT_MESSAGES), "record 2: messages: want at least one, got none"),
    ("openai", "x.jsonl", jsonl(OPENAI[0], FAILED), "record 2: want an answer, got the error"),
    ("openai", "x.jsonl", jsonl(OPENAI[0], UNANSWERED), "record 2: response: want a JSON object, got nothing"),
    ("openai", "x.jsonl", jsonl({**OPENAI[0], "session": 5}), "record 1: session: want text, got int"),
    ("openai", "x.jsonl", jsonl(MINI), "record 1: request: want a JSON object, got nothing"),
]  # fmt: skip


def assert_no_output(folder: Path, before: set[Path], result: Result, *parts: str) -> None:
    assert isinstance(result.exception, AgspecError), result.output
    message = str(result.exception)
    assert "\n" not in message
    for part in parts:
        assert part in message
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize(("kind", "name", "data", "reason"), BROKEN)
def test_broken_input(kind: str, name: str, data: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    result = run(kind, tmp_path / name, "-o", tmp_path / "out.jsonl")
    assert_no_output(tmp_path, {tmp_path / name}, result, str(tmp_path / name), reason)
    assert result.stdout == ""


@pytest.mark.parametrize("kind", KINDS)
def test_missing_and_empty_sources(kind: str, tmp_path: Path) -> None:
    result = run(kind, tmp_path / "nowhere", "-o", tmp_path / "out.jsonl")
    assert_no_output(tmp_path, set(), result, str(tmp_path / "nowhere"), "record 1: want ")
    (tmp_path / "empty").mkdir()
    result = run(kind, tmp_path / "empty", "-o", tmp_path / "out.jsonl")
    assert_no_output(tmp_path, {tmp_path / "empty"}, result, str(tmp_path / "empty"), "want ")


def test_broken_archive(tmp_path: Path) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("readme.txt"))
        info = tarfile.TarInfo("A/prompt_001.log")
        info.size = 9000
        archive.addfile(info, io.BytesIO(b"x" * 9000))
    for name, content, reason in [
        ("cut.tar", data.getvalue()[:4000], "record 1: want a whole tar archive"),
        ("empty.tar", b"\0" * 10240, "record 1: want prompt_NNN.log or JSON request logs in the archive, got none"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(RecordError, match=reason):
            read("openhands", tmp_path / name)


def test_repository_without_commits(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"repo, record HEAD: want a commit history, got: .*"):
        read("git", write_repo(tmp_path))


def test_skip_bad_counts_records(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(OPENAI[0], UNANSWERED) + b"{\n" + jsonl(OPENAI[1]))
    (tmp_path / "b.jsonl").write_bytes(b"\x1f\x8b")
    result = run("openai", tmp_path, "-o", tmp_path / "out" / "t.jsonl.gz", "--skip-bad", "--json")
    assert result.exception is None
    found = json.loads(result.stdout)
    assert (found["sessions"], found["calls"], found["skipped"]) == (2, 2, 3)
    assert [reason.split(":")[0] for reason in found["skipped_reasons"]] == [
        f"{tmp_path / 'a.jsonl'}, record 2",
        f"{tmp_path / 'a.jsonl'}, record 3",
        f"{tmp_path / 'b.jsonl'}, record 1",
    ]
    assert len(read_trace(tmp_path / "out" / "t.jsonl.gz").calls) == 2


def test_skip_bad_with_nothing_left(tmp_path: Path) -> None:
    (tmp_path / "a.traj.json").write_bytes(b"{}")
    result = run("mini-swe-agent", tmp_path, "-o", tmp_path / "t.jsonl", "--skip-bad")
    assert_no_output(tmp_path, {tmp_path / "a.traj.json"}, result, "want at least one mini-swe-agent call, got none")


def test_an_older_output_survives_a_failed_import(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"{}")
    (tmp_path / "out.jsonl").write_bytes(b"older")
    run("openai", tmp_path / "x.jsonl", "-o", tmp_path / "out.jsonl")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"x.jsonl": b"{}", "out.jsonl": b"older"}


def test_file_name_that_is_not_text(tmp_path: Path) -> None:
    source = write_openai(tmp_path).rename(tmp_path / "log\udcff.jsonl")
    trace = read("openai", source)
    write_trace(trace, tmp_path / "t.jsonl")
    assert read_trace(tmp_path / "t.jsonl") == trace


# --- command -------------------------------------------------------------------------------------------------------


def test_command_writes_data_to_stdout_and_talk_to_stderr(tmp_path: Path) -> None:
    source = write_openai(tmp_path)
    quiet = run("openai", source, "-o", tmp_path / "t.jsonl")
    assert (quiet.exit_code, quiet.stdout) == (0, "")
    assert quiet.stderr == f"{tmp_path / 't.jsonl'}: 2 sessions, 2 calls, 0 bad records skipped\n"
    loud = run("openai", source, "-o", tmp_path / "u.jsonl", "--json")
    assert json.loads(loud.stdout)["calls"] == 2
    assert (tmp_path / "t.jsonl").read_bytes() == (tmp_path / "u.jsonl").read_bytes()


def test_command_git_options(tmp_path: Path) -> None:
    source = write_git(tmp_path)
    result = run("git", source, "-o", tmp_path / "t.jsonl", "--edit-format", "whole", "--max-commits", "1")
    assert result.exception is None
    (call,) = read_trace(tmp_path / "t.jsonl").calls
    assert call.output.content == "a.py\n```\ndef f():\n    return 2\n```"


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    source = write_openai(tmp_path)
    with pytest.raises(SettingsError, match="edit_format: want kind git, got openai"):
        import_sources("openai", [source], name="t", edit_format="whole")
    with pytest.raises(SettingsError, match=r"kind: want one of mini-swe-agent, .*, got 'cursor'"):
        import_sources("cursor", [source], name="t")
    with pytest.raises(SettingsError, match="edit_format: want one of search-replace"):
        import_sources("git", [source], name="t", edit_format="patch")
    result = run("openai", source, "-o", source)
    assert isinstance(result.exception, SettingsError)
    assert source.read_bytes() == jsonl(*OPENAI)


# --- the recorded sessions beside the repository -------------------------------------------------------------------

RECORDED = [
    ("mini-swe-agent", "mini-swe-agent", 14, 1055),
    ("aider", "aider-llm-history/friendly_names.aider.llm.history.gz", 1, 33),
    ("openai", "aider-edits/aider-edits.openai.jsonl.gz", 55, 103),
    ("openhands", "openhands-sdk-llm-fixtures", 2, 10),
    ("openhands", "openhands-integration-mock-2024/mock.tar.gz", 18, 93),
    ("swe-agent", "swe-agent-demos", 13, 126),
]


@needs_shared
@pytest.mark.parametrize(("kind", "source", "num_sessions", "num_calls"), RECORDED)
def test_recorded_counts(kind: str, source: str, num_sessions: int, num_calls: int, tmp_path: Path) -> None:
    trace = read(kind, TRACES / source)
    assert counts(trace) == (num_sessions, num_calls)
    assert all(call.messages and (call.output.content or call.output.tool_calls) for call in trace.calls)
    write_trace(trace, tmp_path / "t.jsonl.gz")
    assert read_trace(tmp_path / "t.jsonl.gz") == trace


@needs_shared
def test_recorded_mini_swe_agent_is_append_only() -> None:
    trace = read("mini-swe-agent", TRACES / "mini-swe-agent")
    for calls in trace.sessions.values():
        for before, after in pairwise(calls):
            assert after.messages[: len(before.messages)] == before.messages
            answer = after.messages[len(before.messages)]
            assert (answer.content, answer.tool_calls) == (before.output.content, before.output.tool_calls)
    assert len(trace.sessions["pvlib__pvlib-python-1072"]) == 15
    assert sum(call.output.reasoning is not None for call in trace.calls) == 241
    num_characters = sum(
        len(call.output.content)
        + len(call.output.reasoning or "")
        + sum(len(t.arguments) for t in call.output.tool_calls)
        for call in trace.calls
    )
    assert num_characters == 735_342


@needs_shared
def test_recorded_aider_editor_reads_the_architects_answer() -> None:
    calls = read("aider", TRACES / "aider-llm-history/friendly_names.aider.llm.history.gz").calls
    editors = [n for n, call in enumerate(calls) if "developer who edits source code" in call.messages[0].content]
    assert len(editors) >= 5
    assert all(any(calls[n - 1].output.content in m.content for m in calls[n].messages) for n in editors)


@needs_shared
def test_recorded_swe_agent_elision_is_what_was_sent() -> None:
    """One demo records the messages after each step, elided: they are the next step's prompt."""
    path = next((TRACES / "swe-agent-demos").rglob("*function_calling_replace_from_source/*.traj.gz"))
    steps = json.loads(gzip.decompress(path.read_bytes()))["trajectory"]
    calls = read("swe-agent", path).calls
    for step, call in zip(steps, calls[1:], strict=False):
        assert [m["content"] for m in step["messages"]] == [m.content for m in call.messages]


@needs_shared
def test_recorded_openhands_without_native_tools() -> None:
    trace = read("openhands", TRACES / "openhands-sdk-llm-fixtures/nonfncall-llm-logs")
    written = [call.output.content for call in trace.calls]
    assert [len(call.output.tool_calls) for call in trace.calls] == [1, 0, 0, 0]
    assert all("<function=" in content for content in written[1:])
    for before, after in zip(trace.calls[1:], trace.calls[2:], strict=False):
        head = before.output.content.split("\n")[0].split(" ", 1)[-1]
        assert any(head in m.content for m in after.messages if m.role == "assistant")
