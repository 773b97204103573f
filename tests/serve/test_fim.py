"""Completion over HTTP in front of a server of OpenAI's completions: five APIs, errors, cancellation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from agspec.fim.families import family_of
from agspec.fim.vocabulary import FimVocabulary
from agspec.serve.fim.alone import Alone
from agspec.serve.fim.backend import HttpBackend
from agspec.serve.fim.routes import PATHS, FimRoutes
from agspec.serve.fim.service import FimService
from agspec.tokens import load_tokenizer
from tests.support import SHARED, needs_shared

PREFIX, SUFFIX = "def f(a, b):\n    return ", "\n\n\nprint(f(1, 2))\n"
WRITTEN = "a + b\n\n\nprint(f(1, 2))\n"
SHOWN = "a + b"


class Model:
    """A server of completions that writes ``text`` in pieces of three characters, each after ``pause_s``."""

    def __init__(self, text: str = WRITTEN, pause_s: float = 0.0, status: int = 200) -> None:
        self.text, self.pause_s, self.status = text, pause_s, status
        self.bodies: list[dict[str, Any]] = []
        self.open = self.dropped = 0

    async def _events(self) -> AsyncIterator[bytes]:
        self.open += 1
        try:
            for at in range(0, len(self.text), 3):
                await asyncio.sleep(self.pause_s)
                yield f"data: {json.dumps({'choices': [{'text': self.text[at : at + 3]}]})}\n\n".encode()
            yield b"data: [DONE]\n\n"
        except (GeneratorExit, asyncio.CancelledError):
            self.dropped += 1
            raise
        finally:
            self.open -= 1

    def handle(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(self.status, json={"data": []})
        self.bodies.append(json.loads(request.content))
        if self.status != 200:
            return httpx.Response(self.status, text="no such model")
        return httpx.Response(200, content=self._events())


def client_of(
    model: Model, *, keys: tuple[str, ...] = (), family: str = "qwen2.5-coder", ids: bool = False, **more: Any
):
    backend = HttpBackend("http://model/v1", model="m", transport=httpx.MockTransport(model.handle), **more)
    found = family_of(family)
    vocabulary = None
    if ids:
        vocabulary = FimVocabulary(load_tokenizer(SHARED / "tokenizers" / "qwen2.tokenizer.json"), found)
    routes = FimRoutes(FimService(backend, found, vocabulary), models=("m",), keys=keys)
    return httpx.AsyncClient(transport=httpx.ASGITransport(Alone(routes, backend)), base_url="http://fim")


def run(model: Model, play: Callable[[httpx.AsyncClient], Awaitable[Any]], **more: Any) -> Any:
    async def main() -> Any:
        async with client_of(model, **more) as client:
            return await play(client)

    return asyncio.run(main())


def post(path: str, body: dict[str, Any], model: Model | None = None, **more: Any) -> httpx.Response:
    return run(model or Model(), lambda client: client.post(path, json=body), **more)


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.headers["content-type"].startswith("text/event-stream")
    return [json.loads(line[6:]) for line in answer.text.split("\n\n") if line.startswith("data: {")]


BODIES = {
    "/v1/completions": {"model": "m", "prompt": PREFIX, "suffix": SUFFIX, "max_tokens": 32, "language": "python"},
    "/v1/fim/completions": {"model": "m", "prompt": PREFIX, "suffix": SUFFIX, "random_seed": 3, "language": "python"},
    "/infill": {"input_prefix": PREFIX, "input_suffix": SUFFIX, "n_predict": 32, "language": "python"},
    "/v1/autocomplete": {"prefix": PREFIX, "suffix": SUFFIX, "path": "f.py"},
    "/v1/tasks/fim": {"prefix": [PREFIX, PREFIX], "suffix": [SUFFIX, SUFFIX], "language": "python"},
}


def text_of(path: str, told: dict[str, Any]) -> str:
    if path == "/infill":
        return told["content"]
    if path == "/v1/autocomplete":
        return told["completion"]
    choice = told["choices"][0]
    return choice["text"] if "text" in choice else (choice.get("message") or choice["delta"]).get("content", "")


@pytest.mark.parametrize("path", BODIES)
def test_each_api_says_the_same_whole_and_in_a_stream(path: str):
    whole = post(path, BODIES[path])
    assert whole.status_code == 200, whole.text
    assert text_of(path, whole.json()) == SHOWN
    told = events(post(path, {**BODIES[path], "stream": True}))
    if path == "/v1/tasks/fim":
        for index in (0, 1):
            mine = [event["choices"][0] for event in told if event["choices"][0]["index"] == index]
            assert "".join(choice["delta"].get("content", "") for choice in mine) == SHOWN
            assert mine[-1]["finish_reason"] == "stop"
    else:
        *pieces, last = told
        assert "".join(text_of(path, piece) for piece in pieces) == SHOWN
        assert text_of(path, last) == ""


def test_what_tabby_llama_vim_and_mistral_read():
    told = post("/v1/completions", BODIES["/v1/completions"]).json()
    assert (told["object"], told["choices"][0]["finish_reason"], told["model"]) == ("text_completion", "stop", "m")
    assert told["usage"]["total_tokens"] == told["usage"]["prompt_tokens"] + told["usage"]["completion_tokens"]
    told = post("/v1/fim/completions", BODIES["/v1/fim/completions"]).json()
    assert told["choices"][0]["message"]["role"] == "assistant"
    told = post("/infill", BODIES["/infill"]).json()
    assert {"prompt_n", "prompt_ms", "predicted_n", "predicted_ms", "prompt_per_second", "predicted_per_second"} <= (
        told["timings"].keys()
    )
    told = post("/v1/autocomplete", BODIES["/v1/autocomplete"]).json()
    assert told["latency_ms"].keys() == {"total", "prepare", "first"}


@needs_shared
def test_H6_infills_prompt_stands_after_the_middle():
    model = Model()
    body = {"input_prefix": "a\n", "input_suffix": "\nc", "prompt": "b = ", "language": "python"}
    assert post("/infill", body, model, ids=True).status_code == 200
    vocabulary = load_tokenizer(SHARED / "tokenizers" / "qwen2.tokenizer.json")
    text = vocabulary.decode(model.bodies[0]["prompt"])
    assert text == "<|fim_prefix|>a\n<|fim_suffix|>\nc<|fim_middle|>b = "
    assert 151645 in model.bodies[0]["stop_token_ids"]


@needs_shared
def test_other_files_and_symbols_stand_before_the_prompt_and_stay_while_one_types():
    model = Model()
    store = "class Store:\n    def read(self, key): return self.data[key]\n"
    body = {"prefix": "store = Store()\nstore.read(", "suffix": ")\n", "path": "main.py", "editor_id": "e",
            "open_files": [{"path": "store.py", "text": store}, {"path": "main.py", "text": "x"}]}  # fmt: skip

    async def play(client: httpx.AsyncClient) -> None:
        for typed in ("", "k", "ke"):
            await client.post("/v1/autocomplete", json={**body, "prefix": body["prefix"] + typed})

    run(model, play, ids=True)
    decode = load_tokenizer(SHARED / "tokenizers" / "qwen2.tokenizer.json").decode
    texts = [decode(told["prompt"]) for told in model.bodies]
    heads = {text.partition("<|fim_prefix|>")[0] for text in texts}
    assert len(heads) == 1
    assert "<|file_sep|>store.py\nclass Store:" in heads.pop()
    assert all("<|file_sep|>main.py\n<|fim_prefix|>" in text for text in texts)


@pytest.mark.parametrize(
    ("path", "change", "line"),
    [
        ("/v1/completions", {"n": 2}, "n: want 1 with suffix, got 2"),
        ("/v1/completions", {"echo": True}, "echo: want none with suffix, got one"),
        ("/v1/completions", {"logprobs": 1}, "logprobs: want none with suffix, got one"),
        ("/v1/completions", {"prompt": ["a", "b"]}, "prompt: input should be a valid string, got ['a', 'b']"),
        ("/v1/completions", {"max_tokens": 0}, "max_tokens: input should be greater than or equal to 1, got 0"),
        (
            "/v1/completions",
            {"prompt": "a<|fim_middle|>"},
            "prompt: want text without <|fim_middle|> where no tokenizer",
        ),
        ("/v1/fim/completions", {"min_tokens": 4}, "min_tokens: want 0, got 4"),
        ("/v1/tasks/fim", {"suffix": ["a"]}, "suffix: want as many suffixes as prefixes, and one or more, got 2 and 1"),
        ("/v1/autocomplete", {"window": 4}, "window: input should be greater than or equal to 8, got 4"),
        ("/v1/autocomplete", {"temperature": 3}, "temperature: input should be less than or equal to 2, got 3"),
    ],
)
def test_H8_bad_requests_are_one_line(path: str, change: dict[str, Any], line: str):
    answer = post(path, {**BODIES[path], **change})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(line)


def test_unknown_models_paths_and_no_json():
    assert post("/v1/completions", {**BODIES["/v1/completions"], "model": "gpt"}).status_code == 404
    assert post("/v1/other", {}).status_code == 404
    answer = run(Model(), lambda client: client.post("/infill", content=b"{"))
    assert (answer.status_code, "want a JSON object" in answer.text) == (400, True)


@pytest.mark.parametrize("path", sorted(PATHS))
def test_every_route_wants_the_key(path: str):
    body = BODIES.get(path, BODIES["/infill"])
    for headers, status in (({}, 401), ({"authorization": "Bearer no"}, 401), ({"authorization": "Bearer k2"}, 200),
                            ({"x-api-key": "k1"}, 200)):  # fmt: skip
        answer = run(Model(), lambda client, h=headers: client.post(path, json=body, headers=h), keys=("k1", "k2"))
        assert answer.status_code == status


def test_a_backend_that_is_down_slow_or_refuses_is_told():
    def down(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    model = Model()
    model.handle = down
    answer = post("/infill", BODIES["/infill"], model)
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        502,
        "http://model: want a server, got: connection refused",
    )
    assert run(model, lambda client: client.get("/health")).status_code == 503

    def slow(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("")

    model.handle = slow
    answer = post("/infill", BODIES["/infill"], model)
    assert (answer.status_code, "in time" in answer.text) == (504, True)
    answer = post("/infill", BODIES["/infill"], Model(status=500))
    assert (answer.status_code, "want 200, got 500: no such model" in answer.text) == (502, True)
    told = events(post("/infill", {**BODIES["/infill"], "stream": True}, Model(status=500)))
    assert told[0]["error"]["code"] == 502


def test_a_newer_request_of_the_editor_ends_the_older_one():
    model = Model("x = " + "1 + " * 400, pause_s=0.01)
    body = {**BODIES["/v1/autocomplete"], "editor_id": "e", "suffix": "", "max_tokens": 500}

    async def play(client: httpx.AsyncClient) -> list[httpx.Response]:
        first = asyncio.ensure_future(client.post("/v1/autocomplete", json=body))
        await asyncio.sleep(0.1)
        other = asyncio.ensure_future(client.post("/v1/autocomplete", json={**body, "editor_id": "f"}))
        await asyncio.sleep(0.05)
        model.text = "2\n\n"
        second = await client.post("/v1/autocomplete", json=body)
        assert not other.done(), "another editor's goes on"
        other.cancel()
        return [await first, second]

    first, second = run(model, play)
    assert (first.status_code, first.json()["error"]["message"]) == (409, "superseded by a newer request of editor e")
    assert second.json()["completion"] == "2"
    assert model.open == 0


def test_a_completion_that_has_ended_is_not_waited_for():
    """The model would write on for seconds: its stream is closed at the closing bracket that stands already."""
    model = Model("a, b)" + " # and on" * 1000, pause_s=0.001)
    answer = post("/infill", {"input_prefix": "f(", "input_suffix": ")\n", "language": "python"}, model)
    assert answer.json()["content"] == "a, b"
    assert (model.open, model.dropped) == (0, 1)


def test_time_is_kept():
    model = Model("word " * 1000, pause_s=0.01)
    answer = post(
        "/infill", {"input_prefix": "x = ", "input_suffix": "", "t_max_predict_ms": 60, "n_predict": 900}, model
    )
    assert answer.json()["content"]
    assert model.open == 0
