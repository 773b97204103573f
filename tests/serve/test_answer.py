"""Chat requests to NAME+copy: which are answered by a program, and what the model is told."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from agspec.scaffold import load_profiles
from agspec.serve.edits.answer import Shown, asked_for, shown_files
from agspec.serve.edits.chat import Answering, why_plain
from agspec.serve.exchange import Exchange, Reader
from agspec.serve.sessions import Sessions

PROFILES = load_profiles()
CHAT = "/v1/chat/completions"
TEXT = "def area(w, h):\n    return w + h\n"
ADDED = "I have *added these files to the chat* so you can go ahead and edit them.\n\n"
WHOLE = [
    {
        "role": "system",
        "content": "Act as an expert software developer.\noutput a copy of each file that needs changes",
    },
    {"role": "user", "content": f"{ADDED}area.py\n```\n{TEXT}```\n"},
    {"role": "assistant", "content": "Ok."},
    {"role": "user", "content": "Mend it."},
]


def exchange(body: dict[str, Any], **headers: str) -> Exchange:
    reader = Reader(PROFILES, Sessions(max_age_s=60, clock=lambda: 0.0))
    body = {"model": "m+copy", "messages": WHOLE, **body}
    return reader.exchange(CHAT, headers, orjson.dumps(body), body, tenant="t")


def test_the_latest_text_of_each_file_is_what_may_be_copied():
    newer = {"role": "user", "content": f"{ADDED}b.py\n```\nx = 1\n```\n\narea.py\n```\n{TEXT}# end\n```\n"}
    one = exchange({"messages": [*WHOLE[:3], newer]})
    assert shown_files(one.match.scaffold, one.asked.messages) == (
        Shown("b.py", "x = 1\n", 3), Shown("area.py", f"{TEXT}# end\n", 3),
    )  # fmt: skip


def test_lines_get_numbers_where_they_are_shown_and_the_last_message_says_what_to_write():
    told = asked_for(WHOLE, [Shown("area.py", TEXT, 1)], escaped=False)
    assert told[1]["content"] == f"{ADDED}area.py\n```\n1|def area(w, h):\n2|    return w + h\n```\n"
    assert told[3]["content"].startswith("Mend it.\n\n")
    assert "copies" not in WHOLE[3]["content"], "the request itself stays as it was"
    assert '<copy lines="i-j"/> writes the lines i to j of area.py' in told[3]["content"]
    assert told[0] == WHOLE[0]


def test_several_files_are_counted():
    told = asked_for(WHOLE, [Shown("area.py", TEXT, 1), Shown("b.py", "x\n", 1)], escaped=True)
    note = told[-1]["content"]
    assert "file 1 is area.py\nfile 2 is b.py" in note
    assert '<copy file="n" lines="i-j"/>' in note
    assert "write_file" in note


@pytest.mark.parametrize("first", ["system", "user"])
def test_after_a_tools_result_the_system_message_says_it(first: str):
    messages = [{"role": first, "content": "Hello"}, {"role": "tool", "content": f"     1\t{TEXT}"}]
    told = asked_for(messages, [Shown("area.py", TEXT, 1)], escaped=True)
    assert "area.py" in told[0]["content"]
    assert [message["role"] for message in told] == (
        ["system", "tool"] if first == "system" else ["system", "user", "tool"]
    )


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, None),
        ({"temperature": 0.3, "max_tokens": 9, "n": 1, "stop": [], "logprobs": False, "user": "u"}, None),
        ({"n": 2}, "n"),
        ({"stop": ["\n"]}, "stop"),
        ({"logprobs": True}, "logprobs"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"guided_regex": "a"}, "guided_regex"),
        ({"tools": [{}]}, "tools"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, None),
    ],
)
def test_what_a_program_cannot_give_is_left_to_vllm(body: dict[str, Any], why: str | None):
    assert why_plain({"model": "m", "messages": WHOLE, **body}, tools=False) == why


def test_tools_are_answered_where_calls_can_be_read_and_the_model_is_free_to_call():
    body = {"tools": [{}], "messages": WHOLE}
    assert why_plain(body, tools=True) is None
    assert why_plain({**body, "tool_choice": "auto"}, tools=True) is None
    assert why_plain({**body, "tool_choice": "required"}, tools=True) == "tools"


class Tokenizer:
    def apply_chat_template(self, messages: list[dict[str, Any]], **options: Any) -> list[int]:
        return [1, 2, 3]


class Editing:
    """Of the server's: what is looked at before anything is decoded."""

    class engine:
        class renderer:
            get_tokenizer = Tokenizer


@pytest.mark.parametrize(
    ("body", "headers", "answered"),
    [
        ({}, {}, True),
        ({"model": "m"}, {}, False),
        ({"model": "m"}, {"x-agspec-edit": "Copy"}, True),
        ({"messages": [{"role": "user", "content": "Hello"}]}, {}, False),
        ({"stop": ["x"]}, {}, False),
    ],
)
def test_only_those_that_ask_for_it_and_show_a_file_are_answered(body, headers, answered):
    answering = Answering(Editing(), parse_tools=None, escaped=True, sampling={"top_p": 0.8, "max_tokens": 4})
    assert (answering.app(exchange(body), headers) is not None) == answered
