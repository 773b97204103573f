"""Completion inside ``agspec serve`` on the real engine: every route, clients that leave, the prefix cache, stores."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from mistralai.client import Mistral

from agspec.serve.config import ServeConfig
from agspec.serve.fim.forced import FAMILY
from agspec.serve.process import Server
from agspec.settings import Settings

pytestmark = pytest.mark.engine
LINES = "".join(f"def area_{i}(width, height):\n    return width * height * {i}\n\n\n" for i in range(40))
HALF = LINES.index("def area_20")
PREFIX, SUFFIX = LINES[:HALF] + "def area(width, height):\n    return ", "\n\n\n" + LINES[HALF:]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/completions": {"model": "embedded", "prompt": PREFIX, "suffix": SUFFIX, "max_tokens": 12},
    "/v1/fim/completions": {"model": "embedded", "prompt": PREFIX, "suffix": SUFFIX, "max_tokens": 12},
    "/infill": {"input_prefix": PREFIX, "input_suffix": SUFFIX, "n_predict": 12},
    "/v1/autocomplete": {"prefix": PREFIX, "suffix": SUFFIX, "max_tokens": 12, "temperature": 0},
    "/v1/tasks/fim": {"prefix": [PREFIX, "x = "], "suffix": [SUFFIX, "\n"], "max_tokens": 12},
}
ASKED: dict[str, Any] = {**BODIES["/v1/completions"], "temperature": 0}
ENDLESS = {"model": "embedded", "prompt": "Count: 1, 2, 3, 4, 5, 6,", "suffix": "\n", "max_tokens": 2000,
           "stream": True, "language": "unknown", "temperature": 1.0}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("fim") / "log"
    config = ServeConfig(fim_family=str(FAMILY))
    flags = ("--max-model-len", "4096", "--max-num-seqs", "8", "--api-key", "mine")
    with Server.with_agspec(log, settings=Settings(), config=config, flags=flags) as one:
        one.client.headers["authorization"] = "Bearer mine"
        yield one


@pytest.mark.parametrize("path", BODIES)
def test_every_route_completes_behind_the_key(server: Server, path: str) -> None:
    assert server.client.post(path, json=BODIES[path], headers={"authorization": ""}).status_code == 401
    answer = server.client.post(path, json=BODIES[path])
    assert answer.status_code == 200, answer.text
    stream = server.client.post(path, json={**BODIES[path], "stream": True})
    assert stream.status_code == 200
    assert stream.text.startswith("data: {")


def test_openais_client_reads_both_ways(server: Server) -> None:
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="mine", max_retries=0)
    whole = client.completions.create(**ASKED)
    pieces = list(client.completions.create(**ASKED, stream=True))
    assert whole.choices[0].text == "".join(piece.choices[0].text for piece in pieces if piece.choices) != ""
    assert whole.choices[0].finish_reason == pieces[-1].choices[0].finish_reason in ("stop", "length")
    assert whole.usage is not None
    assert whole.usage.completion_tokens > 0
    with pytest.raises(openai.BadRequestError, match="echo"):
        client.completions.create(**ASKED, echo=True)
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="other", max_retries=0).completions.create(**ASKED)


def test_mistrals_client_reads_both_ways(server: Server) -> None:
    client = Mistral(api_key="mine", server_url=server.url)
    whole = client.fim.complete(**ASKED).choices[0]
    with client.fim.stream(**ASKED) as events:
        chunks = [event.data.choices[0] for event in events]
    assert whole.message.content == "".join(chunk.delta.content or "" for chunk in chunks) != ""
    assert whole.finish_reason == chunks[-1].finish_reason in ("stop", "length")


def test_an_empty_suffix_is_vllms_own_completion(server: Server) -> None:
    body = {"model": "embedded", "prompt": "Hello", "suffix": "", "max_tokens": 3, "n": 2, "temperature": 1.0}
    assert len(server.client.post("/v1/completions", json=body).json()["choices"]) == 2


def test_while_one_types_the_prompt_is_not_prefilled_again(server: Server) -> None:
    """Beyond the suffix, which stands after the cursor in this order, next to nothing is new (issue 6, 5.6.3)."""
    body = {"suffix": "\n", "max_tokens": 2, "temperature": 0, "editor_id": "typist"}
    shares = []
    for typed in ("", "wi", "width", "width *", "width * hei"):
        usage = server.client.post("/v1/autocomplete", json={**body, "prefix": PREFIX + typed}).json()["usage"]
        shares.append(1 - usage["prompt_tokens_details"]["cached_tokens"] / usage["prompt_tokens"])
    assert max(shares[1:]) < 0.15, "the last block of 128 tokens, at most"


def test_open_files_are_drafted_from(server: Server) -> None:
    prefix = "from areas import area_7\n\n\ndef area_7(width, height):\n    "
    body = {"prefix": prefix, "suffix": "\n", "max_tokens": 24,
            "temperature": 0, "editor_id": "reader", "open_files": [{"path": "areas.py", "text": LINES}]}  # fmt: skip
    for _ in range(2):
        assert server.client.post("/v1/autocomplete", json=body).status_code == 200
        server.settle()
    stats = server.stats()
    assert stats["by_role"]["fim"]["num_draft_tokens"] > 0
    assert stats["stores"]["workspace"]["memory_bytes"] > 0
    assert (stats["errors"], stats["api_errors"]) == ({}, {})


def test_a_newer_request_of_the_editor_ends_the_older_one(server: Server) -> None:
    async def play() -> tuple[httpx.Response, float]:
        async with httpx.AsyncClient(base_url=server.url, headers=dict(server.client.headers), timeout=60) as client:
            body = {**ENDLESS, "stream": False, "editor_id": "e"}
            first = asyncio.ensure_future(client.post("/v1/completions", json=body))
            await asyncio.sleep(0.5)
            began = time.monotonic()
            second = asyncio.ensure_future(client.post("/v1/completions", json={**body, "max_tokens": 2}))
            answer = await first
            took = time.monotonic() - began
            assert (await second).status_code == 200
            return answer, took

    answer, took = asyncio.run(play())
    assert answer.status_code == 409
    assert took < 2
    assert server.runs(0, within_s=2)


def test_H12_two_hundred_streams_dropped_after_their_first_byte(server: Server) -> None:
    async def drop(client: httpx.AsyncClient) -> None:
        async with client.stream("POST", "/v1/completions", json=ENDLESS) as stream:
            async for _ in stream.aiter_bytes():
                break

    async def play() -> None:
        limits = httpx.Limits(max_connections=8)
        headers = dict(server.client.headers)
        async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=120, limits=limits) as client:
            await asyncio.gather(*(drop(client) for _ in range(200)))

    asyncio.run(play())
    assert server.runs(0, within_s=1.5), "the engine runs on"
    assert server.client.post("/infill", json=BODIES["/infill"]).status_code == 200
    stats = server.stats()
    assert (stats["errors"], stats["api_errors"]) == ({}, {})
