"""Requests to /v1/edits, read and put into words."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from fastapi import FastAPI
from jinja2 import TemplateError

from agspec.costfile import read_cost
from agspec.serve.bodies import BadRequest
from agspec.serve.edits.body import Counts, read_body
from agspec.serve.edits.choose import Choice
from agspec.serve.edits.prompt import messages, tokens_of
from agspec.serve.edits.routes import router

BODY = {"model": "m", "instruction": "Mend it.", "files": [{"path": "a.py", "text": "x\r\n\ty\nz"}]}


def test_lines_are_numbered_for_copies_only():
    body = read_body(BODY)
    (file,) = body.files
    asked = messages(body, file, "copy")[-1]["content"]
    assert "a.py:\n1|x\r\n2|\ty\n3|z\n" in asked
    assert asked.endswith("Mend it.\nWrite the program for a.py.")
    assert "a.py:\nx\r\n\ty\nz\n" in messages(body, file, "whole")[-1]["content"]


def test_text_of_the_request_is_not_read_as_a_place_to_fill():
    body = read_body({**BODY, "files": [{"path": "a.py", "text": "{instruction} {path} {files}\n"}]})
    assert "1|{instruction} {path} {files}\n" in messages(body, body.files[0], "copy")[-1]["content"]


@pytest.mark.parametrize("name", ["cpu-smollm2-135m", "h100-7b", "a100-32b"])
def test_auto_asks_for_programs_of_long_files_only(name):
    choice = Choice(read_cost(name), 48)
    assert choice.way(0, numbering=0) == choice.way(100, numbering=60) == "whole"
    assert choice.way(3000, numbering=1600) == "copy"
    ways = [choice.way(tokens, numbering=tokens // 2) for tokens in range(0, 4000, 50)]
    assert ways == sorted(ways, key=["whole", "copy"].index), "one border"


def test_numbers_that_cost_more_than_copies_save_are_not_asked_for():
    choice = Choice(read_cost("h100-7b"), 48)
    assert choice.way(1000, numbering=500) == "copy"
    assert choice.way(1000, numbering=500_000) == "whole"


def test_anchored_only_some_lines_have_their_number():
    body = read_body({**BODY, "files": [{"path": "a.py", "text": "a\nb\nc\nd"}]})
    told = messages(body, body.files[0], "copy", every=3)
    assert "a.py:\n1|a\n|b\n|c\n4|d\n" in told[-1]["content"]
    assert "numbers before some of them" in told[0]["content"]
    assert messages(body, body.files[0], "whole", every=3) == messages(body, body.files[0], "whole")


def test_a_body_that_is_no_object_is_refused():
    for body in (None, 3, [], {"model": "m"}):
        with pytest.raises(BadRequest):
            read_body(body)


def test_half_a_character_is_refused():
    with pytest.raises(
        BadRequest, match=r"files.0.text: value error, want text of whole characters, got half of one at 1"
    ):
        read_body({**BODY, "files": [{"path": "a", "text": "x\ud800"}]})


def test_a_template_without_system_messages_gets_it_before_the_users_first():
    told = messages(read_body(BODY), read_body(BODY).files[0], "copy")

    class Strict:
        def apply_chat_template(self, messages: list[dict[str, str]], **options: object) -> list[str]:
            if messages[0]["role"] == "system":
                raise TemplateError("System role not supported")
            return [message["content"] for message in messages]

    system, first, *rest = (message["content"] for message in told)
    assert tokens_of(Strict(), told) == [f"{system}\n\n{first}", *rest]


def test_counts_add_up():
    one = Counts(copied_tokens=1, generated_tokens=2, decode_steps=3, forwards=4, steps_saved=5)
    assert one + one == Counts(copied_tokens=2, generated_tokens=4, decode_steps=6, forwards=8, steps_saved=10)


def test_without_the_flag_the_route_says_how_to_have_it():
    app = FastAPI()
    app.include_router(router)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.post("/v1/edits", json=BODY)

    answer = asyncio.run(ask())
    assert answer.status_code == 501
    assert answer.json()["error"]["message"] == "edits are off: start the server with agspec serve --copy-edits"
