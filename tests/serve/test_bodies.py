"""What a request says, whichever of the four APIs it comes by; and what the answer says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agspec.messages import Message, ToolCall
from agspec.serve.answers import Answer, read_answer
from agspec.serve.bodies import ROUTES, Asked, read

CHAT, COMPLETIONS, RESPONSES, MESSAGES = ROUTES
LS = ToolCall(name="bash", arguments='{"command":"ls"}')
SYSTEM, USER = Message(role="system", content="be brief"), Message(role="user", content="list the files")
CALLED, RESULT = Message(role="assistant", tool_calls=(LS,)), Message(role="tool", content="a.py")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": [{"type": "text", "text": "list "}, {"type": "image_url", "image_url": {}},
                                             {"type": "text", "text": "the files"}]},
                {"role": "assistant", "content": None,
                 "tool_calls": [{"type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}]},
                {"role": "tool", "content": "a.py", "tool_call_id": "1"},
            ],
            "tools": [{"type": "function", "function": {"name": "bash"}}],
        }),
        (RESPONSES, {
            "instructions": "be brief",
            "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "list the files"}]},
                {"type": "reasoning", "summary": []},
                {"type": "function_call", "name": "bash", "arguments": '{"command":"ls"}', "call_id": "1"},
                {"type": "function_call_output", "call_id": "1", "output": "a.py"},
            ],
            "tools": [{"type": "function", "name": "bash"}],
        }),
        (MESSAGES, {
            "system": [{"type": "text", "text": "be brief"}],
            "messages": [
                {"role": "user", "content": "list the files"},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"},
                                                  {"type": "tool_use", "name": "bash", "input": {"command": "ls"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1",
                                              "content": [{"type": "text", "text": "a.py"}]}]},
            ],
            "tools": [{"name": "bash", "input_schema": {}}],
        }),
    ],
)  # fmt: skip
def test_the_same_conversation_by_three_apis(path: str, body: dict[str, Any]) -> None:
    assert read(path, body) == Asked((SYSTEM, USER, CALLED, RESULT), ("bash",))


def test_completions() -> None:
    assert read(COMPLETIONS, {"prompt": "def f("}) == Asked((Message(role="user", content="def f("),))
    assert read(COMPLETIONS, {"prompt": ["a"]}).messages[0].content == "a"
    assert read(COMPLETIONS, {"prompt": ["a", "b"]}) == Asked(())
    assert read(COMPLETIONS, {"prompt": [1, 2, 3]}) == Asked(())


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    "body",
    [{}, {"messages": None, "input": None, "prompt": None}, {"messages": [1, None, {}], "input": [1, {}], "tools": [3]},
     {"messages": [{"role": 3, "content": {"a": 1}, "tool_calls": [None, {"function": None}]}], "tools": {"a": 1}}],
)  # fmt: skip
def test_odd_requests_are_left_to_vllm(path: str, body: dict[str, Any]) -> None:
    assert isinstance(read(path, body), Asked)


def stream(*events: dict[str, Any] | str) -> bytes:
    lines = [f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events]
    return "".join(lines).encode()


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields}]}


CALL = [{"index": 0, "function": {"name": "bash", "arguments": ""}}]
REST = [{"index": 0, "function": {"arguments": '{"command":"ls"}'}}]
SAID = Message(role="assistant", content="So:", tool_calls=(LS,))


@pytest.mark.parametrize(
    ("path", "content", "streamed"),
    [
        (CHAT, json.dumps({"choices": [{"index": 0, "message": {"content": "So:", "tool_calls": [
            {"function": {"name": "bash", "arguments": '{"command":"ls"}'}}]}}]}).encode(), False),
        (CHAT, stream(delta(role="assistant", content=""), delta(content="So"), delta(content=":"),
                      delta(tool_calls=CALL), delta(tool_calls=REST), {"choices": [], "usage": {}}, "[DONE]"), True),
        (RESPONSES, json.dumps({"output": [
            {"type": "message", "content": [{"type": "output_text", "text": "So:"}]},
            {"type": "function_call", "name": "bash", "arguments": '{"command":"ls"}'}]}).encode(), False),
        (RESPONSES, stream({"type": "response.created"}, {"type": "response.completed", "response": {"output": [
            {"type": "message", "content": [{"type": "output_text", "text": "So:"}]},
            {"type": "function_call", "name": "bash", "arguments": '{"command":"ls"}'}]}}), True),
        (MESSAGES, json.dumps({"content": [{"type": "text", "text": "So:"},
                                           {"type": "tool_use", "name": "bash", "input": {"command": "ls"}}]}).encode(),
         False),
        (MESSAGES, stream(
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "So:"}},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "name": "bash"}},
            {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '{"command":'}},
            {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '"ls"}'}},
            {"type": "message_stop"}), True),
    ],
)  # fmt: skip
def test_the_same_answer_by_three_apis(path: str, content: bytes, streamed: bool) -> None:
    assert read_answer(path, content, streamed=streamed) == Answer([SAID], complete=True)


def test_completions_answers() -> None:
    whole = Answer([Message(role="assistant", content="ab")], complete=True)
    body = {"choices": [{"index": 0, "text": "ab"}]}
    assert read_answer(COMPLETIONS, json.dumps(body).encode(), streamed=False) == whole
    pieces = [{"choices": [{"index": 0, "text": text}]} for text in "ab"]
    assert read_answer(COMPLETIONS, stream(*pieces, "[DONE]"), streamed=True) == whole


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("content", [b"", b"data: {", b'data: {"choices":[{}]}', b"null", b"[1]", b'{"error":{}}'])
def test_half_an_answer_is_incomplete(path: str, content: bytes) -> None:
    for streamed in (False, True):
        assert not read_answer(path, content, streamed=streamed).complete


def test_an_aborted_stream_is_incomplete() -> None:
    aborted = {"choices": [{"index": 0, "delta": {}, "finish_reason": "abort"}]}
    failed = {"error": {"message": "out of memory"}}
    for events in ([], [aborted, "[DONE]"], [failed, "[DONE]"]):
        answer = read_answer(CHAT, stream(delta(content="So"), *events), streamed=True)
        assert (answer.messages[0].content, answer.complete) == ("So", False)


def test_a_response_in_the_background_has_not_ended() -> None:
    for status, complete in (("queued", False), ("in_progress", False), ("completed", True), ("incomplete", True)):
        content = json.dumps({"status": status, "output": []}).encode()
        assert read_answer(RESPONSES, content, streamed=False).complete is complete
