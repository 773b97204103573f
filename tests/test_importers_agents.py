"""Claude Code transcripts and Codex session logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agspec.errors import RecordError
from agspec.messages import Message, ToolCall
from agspec.replay.importers import import_sources
from agspec.replay.trace import Call, Output

LS = ToolCall(name="Bash", arguments='{"command":"ls"}')


def log(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def calls(kind: str, *paths: Path, **more: Any) -> tuple[Call, ...]:
    return import_sources(kind, paths, name="x", **more)[0].calls


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "sessionId": "s", "message": {"role": "user", "content": content}, **more}


def said(number: int, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    message = {"id": f"msg_{number}", "model": "m", "role": "assistant", "content": list(blocks)}
    return {"type": "assistant", "sessionId": "s", "message": message, **more}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


USE = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
RESULT = [{"type": "tool_result", "tool_use_id": "t", "content": [text("a.py")]}]


def test_claude_code_blocks_of_one_reply_are_one_answer(tmp_path: Path) -> None:
    path = log(
        tmp_path / "s.jsonl",
        {"type": "summary", "summary": "earlier"}, user("list the files"),
        said(1, {"type": "thinking", "thinking": "I look."}), said(1, text("So:")), said(1, USE),
        user(RESULT), {"type": "file-history-snapshot"}, said(2, text("One file.")),
    )  # fmt: skip
    first, second = calls("claude-code", path)
    assert first == Call(
        session="s", messages=(Message(role="user", content="list the files"),), model="m", scaffold="claude-code",
        output=Output(content="So:", reasoning="I look.", tool_calls=(LS,)),
    )  # fmt: skip
    assert second.messages == (
        *first.messages, Message(role="assistant", content="So:", tool_calls=(LS,)),
        Message(role="tool", content="a.py"),
    )  # fmt: skip
    assert second.output == Output(content="One file.")


def test_claude_code_sub_agents_and_compaction(tmp_path: Path) -> None:
    side: dict[str, Any] = {"isSidechain": True, "agentId": "a1"}
    path = log(
        tmp_path / "s.jsonl",
        user("a big task"), user("look into x", **side), said(1, text("I ask another."), USE),
        said(2, text("x is fine"), **side), user(RESULT),
        said(3, text("API Error"), **{"message": {"id": "e", "model": "<synthetic>", "content": [text("API Error")]}}),
        {"type": "system", "subtype": "compact_boundary"}, user("the summary", isCompactSummary=True),
        said(4, text("Done.")),
    )  # fmt: skip
    found = calls("claude-code", path)
    assert [(call.session, call.output.content) for call in found] == [
        ("s", "I ask another."), ("s:a1", "x is fine"), ("s", "Done."),
    ]  # fmt: skip
    assert found[2].messages == (Message(role="user", content="the summary"),)


def item(**payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-11-30T00:00:00Z", "type": "response_item", "payload": payload}


def spoken(role: str, words: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}


def test_codex_neighbouring_items_are_one_answer(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** End Patch\n"
    path = log(
        tmp_path / "rollout-1.jsonl",
        {"type": "session_meta", "payload": {"id": "0199", "instructions": "You are a coding agent"}},
        {"type": "turn_context", "payload": {"model": "gpt-oss"}},
        item(**spoken("user", "fix it")),
        item(type="reasoning", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="x"),
        item(**spoken("assistant", "I fix it.")), {"type": "event_msg", "payload": {"type": "token_count"}},
        item(type="custom_tool_call", name="apply_patch", input=patch, call_id="1"),
        item(type="custom_tool_call_output", call_id="1", output="Exit code: 0"),
        item(**spoken("assistant", "Done.")),
    )  # fmt: skip
    first, second = calls("codex", path)
    system, task = Message(role="system", content="You are a coding agent"), Message(role="user", content="fix it")
    edit = ToolCall(name="apply_patch", arguments=patch)
    assert first == Call(
        session="0199", messages=(system, task), model="gpt-oss", scaffold="codex",
        output=Output(content="I fix it.", tool_calls=(edit,)),
    )  # fmt: skip
    assert second.messages[-1] == Message(role="tool", content="Exit code: 0")
    assert second.output == Output(content="Done.")


def test_codex_compaction_and_bare_items(tmp_path: Path) -> None:
    compacted = {"type": "compacted", "payload": {"message": "what was done"}}
    path = log(
        tmp_path / "rollout-1.jsonl", {"id": "old", "instructions": "be brief"}, spoken("user", "a"),
        spoken("assistant", "b"), compacted, spoken("user", "c"),
        {"type": "function_call", "name": "shell", "arguments": "{}"},
        {"type": "function_call_output", "output": {"content": "ok"}}, spoken("assistant", "d"),
    )  # fmt: skip
    found = calls("codex", path)
    assert [call.output.content for call in found] == ["b", "", "d"]
    assert {call.session for call in found} == {"old"}
    assert [message.content for message in found[2].messages] == ["be brief", "what was done", "c", "", "ok"]


@pytest.mark.parametrize(
    ("kind", "records", "line"),
    [
        ("claude-code", [said(1, text("hello"))], "record 1: want a message before the first reply, got none"),
        ("claude-code", [user("a"), {"type": "assistant"}], "record 2: message: want a JSON object, got nothing"),
        ("codex", [spoken("assistant", "hello")], "record 1: want a message before the first reply, got none"),
        ("codex", [{"type": "response_item", "payload": 3}], "record 1: payload: want a JSON object, got int"),
    ],
)
def test_bad_logs(kind: str, records: list[dict[str, Any]], line: str, tmp_path: Path) -> None:
    path = log(tmp_path / "x.jsonl", *records)
    with pytest.raises(RecordError) as caught:
        calls(kind, path)
    assert str(caught.value).endswith(line)
