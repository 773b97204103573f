"""Scaffold profiles: roles, opened files and forms by table, broken profiles, and real recorded prompts."""

import gzip
import itertools
import json
import re
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agspec.errors import InputError
from agspec.messages import Message, ToolCall
from agspec.scaffold import OpenedFile, load_profiles
from tests.support import SHARED, needs_shared

HERE = Path(__file__).parent
ROLES = tomllib.loads((HERE / "cases" / "roles.toml").read_text(encoding="utf-8"))["case"]
READS = tomllib.loads((HERE / "cases" / "reads.toml").read_text(encoding="utf-8"))["case"]
TRACES = SHARED / "traces"
PROFILES = [
    "aider", "autocoderover", "claude-code", "cline", "codex", "generic", "metagpt", "mini-swe-agent", "openhands",
    "roo", "swe-agent",
]  # fmt: skip
MINIMAL = """
name = "mine"
description = "my agent"
history = "append_only"
[[match]]
where = "system"
text = "You are my agent"
role = "reviewer"
[[reads]]
where = ["tool"]
begin = '''FILE (?P<path>\\S+)\\n'''
line_prefix = '''\\d+> '''
[[emits]]
kind = "udiff"
forms = ["minus", "plus"]
encode = "tool_arg"
"""


@pytest.mark.parametrize("case", ROLES, ids=lambda case: case["name"])
def test_role(case: dict[str, Any]) -> None:
    messages = [Message(role=role, content=case[role]) for role in ("system", "user") if role in case]
    match = load_profiles().classify(messages, tools=case.get("tools", ()), headers=case.get("headers", {}))
    assert [match.scaffold.name, match.role] == case["want"]
    if "forms" in case:
        assert [form.name for form in match.forms("json")] == case["forms"]
        assert {form.encode for form in match.forms("raw")} == {"none"}


def test_developer_message_is_a_system_message() -> None:
    match = load_profiles().classify([Message(role="developer", content="Act as an expert architect engineer")])
    assert match.role == "architect"


def test_a_history_with_tool_calls_is_a_coders() -> None:
    call = ToolCall(name="read", arguments="{}")
    match = load_profiles().classify([Message(role="assistant", tool_calls=(call,))])
    assert (match.scaffold.name, match.role) == ("generic", "coder")


@pytest.mark.parametrize("case", READS, ids=lambda case: case["name"])
def test_opened_files(case: dict[str, Any]) -> None:
    opened = load_profiles().get(case["scaffold"]).opened_files(Message(role=case["role"], content=case["text"]))
    assert opened == [OpenedFile(**{**row, "path": row["path"] or None}) for row in case["opened"]]


def test_profiles_at_hand() -> None:
    profiles = load_profiles()
    assert sorted(profiles.by_name) == PROFILES
    assert load_profiles() is profiles
    assert profiles.get("openhands").profile.session.headers == ("x-litellm-session-id",)
    with pytest.raises(InputError, match=r"want a scaffold of aider, autocoderover, .*got 'cursor'"):
        profiles.get("cursor")


def test_forms_are_decided_by_scaffold_and_wire() -> None:
    aider, mini = (load_profiles().get(name) for name in ("aider", "mini-swe-agent"))
    assert aider.forms("json") == aider.forms("raw")
    assert [form.name for form in mini.forms("json")] == ["json", "json_lf", "raw", "raw_lf"]
    assert [form.name for form in mini.forms("raw")] == ["raw", "raw_lf"]


def test_a_profile_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINIMAL)
    profiles = load_profiles(tmp_path)
    match = profiles.classify([Message(role="system", content="You are my agent.")])
    assert (match.scaffold.name, match.role) == ("mine", "reviewer")
    assert [form.name for form in match.forms("json")] == ["json_minus", "json_plus"]
    message = Message(role="tool", content="FILE a.py\n1> x\n2> y\ndone")
    assert match.scaffold.opened_files(message) == [OpenedFile("a.py", "x\ny\n", complete=True)]
    assert "mine" not in load_profiles().by_name


BROKEN = [
    ("role = 'reviewer'", "role = 'boss'", r"match\.0\.role: want 'coder', .*got 'boss'"),
    ("where = 'system'", "where = 'system'\ncolour = 1", r"match\.0\.colour: want only known keys, got this one"),
    ("name = 'mine'", "", r"name: want this key, got none"),
    ("forms = ['minus', 'plus']", "forms = ['shouted']", r"emits\.0\.forms\.0: want words of json, .*got 'shouted'"),
    ("forms = ['minus', 'plus']", "forms = []", r"emits\.0\.forms: .*got '\[\]'"),
    ("encode = 'tool_arg'", "encode = 7", r"emits\.0\.encode: want 'raw' or 'tool_arg', got '7'"),
    ("line_prefix = ", "end = '''{path}('''\nline_prefix = ", r"reads\.0: want a regular expression"),
    ("FILE ", "FILE (", r"reads\.0\.begin: want a regular expression \(.*, got 'FILE"),
    ("text = 'You are my agent'", "text = ''", r"match\.0\.text: .*got ''"),
    ("name = 'mine'", "name = ", r"want TOML, got: "),
]


@pytest.mark.parametrize(("old", "new", "reason"), BROKEN, ids=[row[2][:24] for row in BROKEN])
def test_broken_profile_is_one_line(tmp_path: Path, old: str, new: str, reason: str) -> None:
    source = MINIMAL.replace('"', "'")
    assert old in source
    path = tmp_path / "mine.toml"
    path.write_text(source.replace(old, new, 1))
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: {reason}") as caught:
        load_profiles(tmp_path)
    assert "\n" not in str(caught.value)


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="want a folder of profiles, got none"):
        load_profiles(tmp_path / "gone")


MB = 1 << 20
HARD = {
    "one line": "x" * MB,
    "short lines": "x\n" * (MB // 2),
    "spaces": " " * MB,
    "backslashes": '"returncode" "output": "' + "\\" * MB,
    "open string": '"returncode"\n' + '"output": "a' * (MB // 12),
    "fences": "*added these files to the chat*" + "\n\na\n```\n" * (MB // 8),
    "backticks": "*added these files to the chat*\n\na\n```\n" + "`" * MB,
    "windows": "[File: " * (MB // 7),
    "windows by line": "[File: a (1 lines total)]\n" * (MB // 26),
    "cat -n": "Here's the result of running `cat -n` on " * (MB // 41),
    "outputs": "<returncode>" + "<output>\n" * (MB // 9),
    "close tags": "<returncode><output>\n" + "</output>" * (MB // 9),
    "numbers": "".join(f"{i:6d}\t{i}\n" for i in range(MB // 14)),
    "digits": "1" * MB,
    "draft": "<update_snippet>" + "<original_code>\n" * (MB // 16),
    "trailers": "[Command finished with exit code " * (MB // 33),
}


@pytest.mark.parametrize("name", HARD)
def test_time_is_linear_in_the_message(name: str) -> None:
    profiles = load_profiles()
    for role in ("user", "tool"):
        message = Message(role=role, content=HARD[name])
        for scaffold in profiles.by_name.values():
            start = time.process_time()
            scaffold.opened_files(message)
            assert time.process_time() - start < 5, (scaffold.name, role)
    start = time.process_time()
    profiles.classify([Message(role="system", content=HARD[name]), Message(role="user", content=HARD[name])])
    assert time.process_time() - start < 5


def _message(raw: dict[str, Any]) -> Message:
    content = raw.get("content") or ""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    return Message(role=raw["role"], content=content)


def _lines(name: str) -> Iterator[dict[str, Any]]:
    data = (TRACES / name).read_bytes()
    data = gzip.decompress(data) if name.endswith(".gz") else data
    return map(json.loads, data.splitlines())


WIRE = {
    "aider-0.86.2": [("aider", role) for role in ("architect", "editor", "committer")] * 2,
    "mini-swe-agent-2.4.6": [("mini-swe-agent", "coder")] * 2,
    "openhands-sdk-1.58.2": [("openhands", "coder")] * 4,
}


@needs_shared
@pytest.mark.parametrize("client", WIRE)
def test_roles_of_wire_captures(client: str) -> None:
    found = []
    for request in _lines(f"wire-captures/{client}.requests.jsonl"):
        body = request["body"]
        tools = [tool["function"]["name"] for tool in body.get("tools", [])]
        for headers in (request["headers"], {}):
            match = load_profiles().classify([_message(raw) for raw in body["messages"]], tools=tools, headers=headers)
            found.append((match.scaffold.name, match.role))
    assert found[::2] == found[1::2] == WIRE[client]


@needs_shared
def test_opened_files_of_wire_captures() -> None:
    *_, aider, _ = _lines("wire-captures/aider-0.86.2.requests.jsonl")
    *_, openhands = _lines("wire-captures/openhands-sdk-1.58.2.requests.jsonl")
    requests = {"aider": aider, "openhands": openhands}
    found = {
        name: [
            (Path(opened.path or "").name, opened.complete, opened.tabs, opened.text.count("\n"))
            for raw in request["body"]["messages"]
            for opened in load_profiles().get(name).opened_files(_message(raw))
        ]
        for name, request in requests.items()
    }
    assert found == {
        "aider": [("a.py", True, "kept", 2)],
        "openhands": [("a.py", True, "kept", 4), ("a.py", False, "kept", 4), ("", False, "expanded", 4)],
    }


def _aider_log() -> Iterator[list[Message]]:
    text = gzip.decompress((TRACES / "aider-llm-history/friendly_names.aider.llm.history.gz").read_bytes()).decode()
    for block in re.split(r"(?m)^(?=TO LLM |LLM RESPONSE )", text):
        if block.startswith("TO LLM"):
            messages = []
            for chunk in block.split("-------\n")[1:]:
                for role, lines in itertools.groupby(chunk.splitlines(), key=lambda line: line.split(" ")[0]):
                    if role in ("SYSTEM", "USER", "ASSISTANT"):
                        content = "\n".join(line[len(role) + 1 :] for line in lines) + "\n"
                        messages.append(Message(role=role.lower(), content=content))
            yield messages


@needs_shared
def test_aider_log() -> None:
    roles: Counter[tuple[str, str]] = Counter()
    opened: Counter[tuple[str | None, bool]] = Counter()
    for messages in _aider_log():
        match = load_profiles().classify(messages)
        roles[match.scaffold.name, match.role] += 1
        opened.update((file.path, file.complete) for m in messages for file in match.scaffold.opened_files(m))
    assert roles == {("aider", "architect"): 13, ("aider", "editor"): 10, ("aider", "coder"): 8, ("aider", "chat"): 2}
    assert opened["README.md", True] == 28
    assert opened["src/friendly_names/__init__.py", True] == 23
    assert (opened.total(), len(opened)) == (99, 8)


@needs_shared
def test_aider_edits() -> None:
    roles: Counter[tuple[str, str]] = Counter()
    opened: list[OpenedFile] = []
    silent = 0
    for line in _lines("aider-edits/aider-edits.openai.jsonl.gz"):
        messages = [_message(raw) for raw in line["request"]["messages"]]
        match = load_profiles().classify(messages)
        roles[match.scaffold.name, match.role] += 1
        for message in messages:
            found = match.scaffold.opened_files(message)
            opened += found
            silent += "*added these files to the chat*" in message.content and not found
    assert roles == {("aider", "coder"): 103}
    assert silent == 0
    assert all(file.complete and file.path and " " not in file.path for file in opened)
    assert len(opened) == 132


@needs_shared
def test_openhands_fixtures() -> None:
    folder = TRACES / "openhands-sdk-llm-fixtures"
    seen = []
    for path in sorted(folder.glob("*/*.json")):
        messages = [_message(raw) for raw in json.loads(path.read_bytes())["messages"]]
        match = load_profiles().classify(messages)
        assert (match.scaffold.name, match.role) == ("openhands", "coder")
        wire = "none" if path.parent.name.startswith("nonfncall") else "json"
        assert {form.encode for form in match.forms("json")} == {wire}
        files = [file for message in messages for file in match.scaffold.opened_files(message)]
        seen.append([file.complete for file in files])
        assert all(file.text == "print('Hello, World!')\n" for file in files if file.complete)
    terminal, both = [False], [False, True]
    assert seen == [[], [], terminal, terminal, both, both, [], terminal, both, both]


@needs_shared
def test_mini_swe_agent_sessions() -> None:
    opened = []
    for path in sorted((TRACES / "mini-swe-agent").glob("*/*.traj.json.gz")):
        messages = [_message(raw) for raw in json.loads(gzip.decompress(path.read_bytes()))["messages"]]
        match = load_profiles().classify(messages, tools=["bash"])
        assert (match.scaffold.name, match.role) == ("mini-swe-agent", "coder")
        opened += [file for message in messages for file in match.scaffold.opened_files(message)]
    assert len(opened) == 608
    assert not any("<returncode>" in file.text or "</output" in file.text for file in opened)
    assert sum(bool(re.match(r" *\d+\t", file.text)) for file in opened) == 0


@needs_shared
def test_swe_agent_demos() -> None:
    counts = []
    for path in sorted((TRACES / "swe-agent-demos").rglob("*.traj.gz")):
        messages = [_message(raw) for raw in json.loads(gzip.decompress(path.read_bytes()))["history"]]
        match = load_profiles().classify(messages)
        assert (match.scaffold.name, match.role) == ("swe-agent", "coder")
        files = [file for message in messages for file in match.scaffold.opened_files(message)]
        named = [file for file in files if file.path]
        assert not any("\r" in file.text or re.search(r"(?m)^\d+:|CURSOR >>>>>$", file.text) for file in named)
        counts.append((len(files), len(named), sum(file.complete for file in files)))
    assert counts == [
        (2, 2, 2), (2, 2, 2), (12, 10, 2), (3, 2, 2), (3, 2, 2), (10, 7, 3), (8, 7, 2),
        (7, 6, 2), (8, 6, 2), (8, 6, 2), (9, 5, 3), (8, 7, 2), (7, 6, 2),
    ]  # fmt: skip


@pytest.mark.timeout(60)
def test_a_flood_of_markers_is_gone_through_once() -> None:
    for role, text in (
        ("system", "You are a " * 20_000 + ", your goal is "),
        ("system", "You are a x, named y, your goal is z. " * 5_000),
        ("user", "Role: You are a professional engineer" * 26_000),
        ("user", "<update_snippet>" * 26_000),
    ):
        load_profiles().classify([Message(role=role, content=text)])
