"""``POST /v1/edits`` on the real engine, programs forced where a small model would write none that makes sense."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from agspec.copyedit.compile import compile_edit
from agspec.copyedit.machine import Machine
from agspec.copyedit.program import Copy, Gen, Program, show
from agspec.copyedit.source import Source
from agspec.copyedit.token_machine import TokenMachine, Vocabulary
from agspec.serve.config import ServeConfig
from agspec.settings import Settings
from agspec.tokens import Tokens, as_tokens
from benchmarks.e2e.server import TapedServer

pytestmark = pytest.mark.engine
ADDED = "I have *added these files to the chat* so you can go ahead and edit them.\n\n"
TEXT = "".join(f"value_{i} = compute({i})\n" for i in range(1, 51))
AFTER = TEXT.replace("compute(20)", "compute('é', 20)  # </gen>")
SHORT = "def area(w, h):\n    return w + h\n"
WHOLE = f"Here it is.\n\nvalues.py\n```\n{AFTER}```\n"
FLAGS = ("--max-model-len", "4096", "--max-num-seqs", "4", "--api-key", "mine", "--enable-auto-tool-choice",
         "--tool-call-parser", "hermes")  # fmt: skip


class Editor(TapedServer):
    """A server that edits, and writes what it is told."""

    def chat(self, body: dict[str, Any], **more: Any) -> Any:
        """As Aider asks for whole files."""
        whole = "Act as an expert software developer.\noutput a copy of each file that needs changes"
        messages = [
            {"role": "system", "content": whole},
            {"role": "user", "content": f"{ADDED}values.py\n```\n{TEXT}```\n"},
            {"role": "assistant", "content": "Ok."},
            {"role": "user", "content": "Change value 20."},
        ]
        body = {"model": "embedded+copy", "messages": messages, "temperature": 0.0, **body}
        return self.client.post("/v1/chat/completions", json=body, **more)

    def edit(self, **more: Any) -> Any:
        body = {"model": "embedded", "instruction": "Keep everything as it is.",
                "files": [{"path": "values.py", "text": TEXT}], "max_tokens": 400, **more}  # fmt: skip
        return self.client.post("/v1/edits", json=body)

    def tape(self, program: Program, sources: Sequence[str] = (TEXT,), *, escaped: bool = False) -> Tokens:
        machine = Machine([(Source.escaped if escaped else Source)(text.encode()) for text in sources])
        return as_tokens(TokenMachine(machine, Vocabulary(self.tokenizer)).tokens_of(show(program)))


PROGRAM = compile_edit([Source(TEXT.encode())], AFTER.encode())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    log = tmp_path_factory.mktemp("edits") / "log"
    with Editor.with_agspec(log, settings=Settings(), config=ServeConfig(copy_edits=True), flags=FLAGS) as editor:
        editor.client.headers["authorization"] = "Bearer mine"
        yield editor


def test_a_program_is_decoded_and_resolved(server: Editor) -> None:
    tape = server.tape(PROGRAM)
    server.script([tape])
    done = server.edit(edit="copy")
    assert done.status_code == 200, done.text
    answer = done.json()
    (file,) = answer["files"]
    assert file["text"] == AFTER
    assert file["program"].encode() == show(PROGRAM)
    counts = file["counts"]
    copied = [one for one in PROGRAM if isinstance(one, Copy)]
    assert counts["generated_tokens"] == tape.size - 1
    assert counts["forwards"] == counts["decode_steps"] + len(copied)
    assert 0 < counts["decode_steps"] <= tape.size
    assert counts["copied_tokens"] > 10 * counts["generated_tokens"]
    assert counts["steps_saved"] > 9 * counts["decode_steps"]
    assert answer["counts"] == counts


def test_auto_asks_for_a_program_where_there_is_much_to_copy(server: Editor) -> None:
    files = [{"path": "values.py", "text": TEXT}, {"path": "area.py", "text": SHORT}]
    whole = SHORT.replace("+", "*")
    server.script([server.tape((Copy(1, 50),), (TEXT, SHORT)), server.tape((Gen(whole.encode()),), ())])
    answer = server.edit(files=files).json()
    assert [(file["edit"], file["text"]) for file in answer["files"]] == [("copy", TEXT), ("whole", whole)]
    assert answer["counts"]["decode_steps"] == sum(file["counts"]["decode_steps"] for file in answer["files"])


def test_a_stream_tells_text_as_it_is_known(server: Editor) -> None:
    server.script([server.tape(PROGRAM)])
    body = {"model": "embedded", "instruction": "Keep everything as it is.", "edit": "copy", "stream": True,
            "files": [{"path": "values.py", "text": TEXT}], "max_tokens": 400}  # fmt: skip
    with server.client.stream("POST", "/v1/edits", json=body) as stream:
        lines = [line.removeprefix("data: ") for line in stream.iter_lines() if line]
    assert lines.pop() == "[DONE]"
    last = json.loads(lines.pop())
    pieces = [json.loads(line)["text"] for line in lines]
    assert "".join(pieces) == last["files"][0]["text"] == AFTER
    assert pieces[0] == "".join(TEXT.splitlines(keepends=True)[:19]), "a copied block at once"
    assert len(pieces) > 3, "new text as it comes"


@pytest.mark.parametrize(
    ("change", "status", "line"),
    [
        ({"edit": "fast"}, 400, "edit: input should be 'copy', 'whole' or 'auto', got 'fast'"),
        ({"files": []}, 400, "files: "),
        ({"files": [{"path": "a", "text": 3}]}, 400, "files.0.text: input should be a valid string, got 3"),
        ({"files": [{"path": "a", "text": ""}] * 2}, 400, "want each path once"),
        ({"n": 2}, 400, "n: input should be 1, got 2"),
        ({"logprobs": 1}, 400, "logprobs: extra inputs are not permitted, got 1"),
        ({"model": "gpt-4"}, 404, "want one of the models embedded, embedded+copy, got gpt-4"),
        ({"files": [{"path": "a", "text": TEXT * 30}]}, 400, "want files that leave room in the model's context, got"),
    ],
)
def test_bad_requests_are_one_line(server: Editor, change: dict[str, Any], status: int, line: str) -> None:
    done = server.edit(**change)
    assert done.status_code == status
    assert line in done.json()["error"]["message"]


def test_the_route_wants_the_key_and_leaves_ordinary_requests_alone(server: Editor) -> None:
    assert server.client.post("/v1/edits", json={}, headers={"authorization": ""}).status_code == 401
    body = {"model": "embedded", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3}
    server.script(["Hi"])
    assert server.client.post("/v1/chat/completions", json=body).status_code == 200


def test_a_file_that_was_cut_short_is_an_error_not_a_result(server: Editor) -> None:
    """A program ends in time whatever it is: that is not to be taken for the whole file."""
    server.script([])
    for change in ({"edit": "copy", "max_tokens": 24}, {"edit": "whole", "max_tokens": 40}):
        done = server.edit(**change)
        assert (done.status_code, "values.py: want an edit that ends within" in done.text) == (422, True), done.text


def test_a_client_that_leaves_ends_its_edit(server: Editor) -> None:
    poem = Gen("".join(f"line {i * i} of a very long poem\n" for i in range(150)).encode())
    body = {"model": "embedded", "instruction": "Write a very long poem.", "edit": "whole", "stream": True,
            "files": [{"path": "poem.txt", "text": SHORT}], "max_tokens": 3000}  # fmt: skip
    server.script([server.tape((poem,), ())])
    with server.client.stream("POST", "/v1/edits", json=body) as stream:
        next(stream.iter_lines())
        assert server.runs(1, within_s=2)
    assert server.runs(0, within_s=2), "the edit runs on"
    server.settle()
    stats = server.stats()
    assert (stats["errors"], stats["api_errors"]) == ({}, {})


def test_a_model_with_copy_in_its_name_answers_as_ever(server: Editor) -> None:
    tape = server.tape(compile_edit([Source(TEXT.encode())], WHOLE.encode()))
    server.script([tape])
    decoded = server.num_decoded()
    done = server.chat({})
    assert done.status_code == 200, done.text
    answer = done.json()
    (choice,) = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": WHOLE}
    assert (choice["finish_reason"], answer["object"], answer["model"]) == ("stop", "chat.completion", "embedded+copy")
    assert answer["usage"]["completion_tokens"] == tape.size - 1
    assert answer["agspec"]["copied_tokens"] > 5 * tape.size
    assert tape.size <= server.num_decoded() - decoded <= tape.size + 1, "copied text is not decoded"
    session = server.sessions()[0]
    assert (session["scaffold"], session["roles"]) == ("aider", {"coder": 1})


def test_in_a_stream_too_and_by_a_header(server: Editor) -> None:
    server.script([server.tape(compile_edit([Source(TEXT.encode())], WHOLE.encode()))])
    done = server.chat({"model": "embedded", "stream": True, "stream_options": {"include_usage": True}},
                       headers={"X-AgSpec-Edit": "copy"})  # fmt: skip
    lines = [line.removeprefix("data: ") for line in done.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    *chunks, used = map(json.loads, lines)
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == WHOLE
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-2:] == [None, "stop"]
    assert used["choices"] == []
    assert used["usage"]["completion_tokens"] < 200


def test_a_tool_gets_whole_files_in_json(server: Editor) -> None:
    changed = 'value_20 = compute("é", 20)\n'
    head = '<tool_call>\n{"name": "write_file", "arguments": {"path": "values.py", "content": "'
    program = (
        Gen(head.encode()), Copy(1, 19), Gen(json.dumps(changed)[1:-1].encode()), Copy(21, 50),
        Gen(b'"}}\n</tool_call>'),
    )  # fmt: skip
    tool = {"type": "function", "function": {"name": "write_file", "parameters": {"type": "object", "properties": {
        "path": {"type": "string"}, "content": {"type": "string"}}}}}  # fmt: skip
    lines = TEXT.splitlines(keepends=True)
    for stream in (False, True):
        server.script([server.tape(program, escaped=True)])
        done = server.chat({"tools": [tool], "stream": stream})
        assert done.status_code == 200, done.text
        if stream:
            events = [json.loads(line[6:]) for line in done.text.split("\n\n") if line.startswith("data: {")]
            ends = [event["choices"][0] for event in events]
            calls = next(end["delta"]["tool_calls"] for end in ends if "tool_calls" in end["delta"])
            reason = ends[-1]["finish_reason"]
        else:
            (choice,) = done.json()["choices"]
            calls, reason = choice["message"]["tool_calls"], choice["finish_reason"]
        assert reason == "tool_calls"
        told = json.loads(calls[0]["function"]["arguments"])
        assert told == {"path": "values.py", "content": "".join([*lines[:19], changed, *lines[20:]])}


def test_an_answer_that_is_cut_short_says_so(server: Editor) -> None:
    server.script([])
    answer = server.chat({"max_tokens": 30}).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] <= 30


@pytest.mark.parametrize(
    "body", [{"messages": [{"role": "user", "content": "Hello"}]}, {"logprobs": True}, {"n": 2, "temperature": 1.0}]
)
def test_what_a_program_cannot_give_is_served_plain(server: Editor, body: dict[str, Any]) -> None:
    answer = server.chat({"max_tokens": 3, **body}).json()
    assert "agspec" not in answer
    assert answer["usage"]["completion_tokens"] == 3 * body.get("n", 1)


def test_bad_sampling_is_refused_and_serving_goes_on(server: Editor) -> None:
    for body in ({"temperature": -1}, {"top_p": 7}, {"temperature": "hot"}):
        done = server.chat(body)
        assert done.status_code == 400, done.text
    assert {model["id"] for model in server.client.get("/v1/models").json()["data"]} == {"embedded", "embedded+copy"}
    server.settle()
    stats = server.stats()
    assert (stats["errors"], stats["api_errors"]) == ({}, {})
