"""A client of a running agspec server: what ``agspec doctor`` and ``agspec top`` ask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from agspec.errors import InputError

REPEATED = "def area(width, height):\n    return width * height\n\n"
"""Text that a model goes on with as it is, so that a draft of it is accepted."""
SHORT_CONTEXT = 8192
"""Tokens under which a coding agent soon runs out of context."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; ``fix`` says in one line what to change, None where all is well."""

    what: str
    fix: str | None = None


class Client:
    """Talks to the server at ``url``, with or without /v1 at its end. InputError in one line when it cannot."""

    def __init__(self, url: str, *, api_key: str | None, timeout_s: float = 60) -> None:
        self.given = url.rstrip("/")
        self.root = self.given.removesuffix("/v1")
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        try:
            self._http = httpx.Client(base_url=self.root, headers=headers, timeout=timeout_s)
        except (httpx.InvalidURL, ValueError) as error:
            raise InputError(f"{url}: want a URL such as http://localhost:8000/v1 ({error})") from error

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def ask(self, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        """GET, or POST of ``body``."""
        try:
            return self._http.request("GET" if body is None else "POST", path, json=body)
        except httpx.HTTPError as error:
            raise InputError(
                f"{self.root}: want a server that answers, got: {error or type(error).__name__}"
            ) from error

    def json(self, path: str) -> Any:
        """What GET ``path`` answers; InputError for anything but 200."""
        answer = self.ask(path)
        if answer.status_code != 200:
            raise InputError(f"{self.root}{path}: want 200, got {answer.status_code}: {answer.text[:100]}")
        return _decoded(answer)


def _decoded(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError as error:
        raise InputError(f"{answer.url}: want JSON, got {answer.text[:60]!r}") from error


def examine(client: Client, *, model: str | None) -> Iterator[Finding]:
    """Look at everything an agent needs, in order; ends at the first thing without which the rest makes no sense."""
    listed = client.ask("/v1/models")
    if listed.status_code in (401, 403):
        yield Finding("API key", "the server wants its key: give --api-key, and the same to the agent")
        return
    if listed.status_code != 200:
        yield Finding("server", f"no OpenAI-compatible server at {client.root}: /v1/models says {listed.status_code}")
        return
    wrong = client.given == client.root
    yield Finding(
        f"base URL {client.root}/v1",
        f"OpenAI clients want the base URL with /v1: {client.root}/v1" if wrong else None,
    )
    models = {entry["id"]: entry for entry in _decoded(listed).get("data", ())}
    if not models:
        yield Finding("model", "the server lists none")
        return
    if model is not None and model not in models:
        yield Finding("model", f"want one of {', '.join(models)}, got {model}")
        return
    name = model or next(iter(models))
    length = int(models[name].get("max_model_len") or 0)
    short = f"{length} tokens are few for an agent: raise --max-model-len" if length < SHORT_CONTEXT else None
    yield Finding(f"model {name}, context of {length} tokens", short)
    stats = client.ask("/v1/agspec/stats")
    if stats.status_code != 200:
        told = "agspec is off: the server's log says why" if stats.status_code == 503 else "start it with: agspec serve"
        yield Finding("agspec", f"this server does not draft with agspec: {told}")
        return
    yield Finding("agspec is on")
    before = _accepted(_decoded(stats))
    body = {"model": name, "prompt": REPEATED * 6, "max_tokens": 48, "temperature": 0}
    answer = client.ask("/v1/completions", body)
    if answer.status_code != 200:
        yield Finding("round trip", f"a completion fails with {answer.status_code}: {answer.text[:200]}")
        return
    after = _accepted(client.json("/v1/agspec/stats"))
    accepted = max((now - then for now, then in zip(after, before, strict=False)), default=0)
    lost = None if accepted > 0 else "no drafted token was accepted: see errors in /v1/agspec/stats"
    yield Finding(f"round trip: {accepted} drafted tokens accepted", lost)


def _accepted(stats: dict[str, Any]) -> list[int]:
    """By worker: ranks of one engine count alike, engines of a data-parallel server each their own."""
    return [worker["num_accepted_tokens"] for worker in stats["workers"]]
