"""Where tokens come from: the engine of this server, or any server of OpenAI's completions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

import httpx
import orjson

from agspec.engine.tape import TAPE
from agspec.errors import AgspecError
from agspec.fim.prompt import FimPrompt


class BackendError(AgspecError):
    """The model did not answer. ``status``: what a client is told."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Wanted:
    """What is asked of a model. ``extra``: for our engine alone; ``expression``: what the text has to match."""

    name: str
    prompt: FimPrompt
    max_tokens: int
    stop: tuple[str, ...]
    sampling: Mapping[str, Any]
    extra: Mapping[str, Any]
    expression: str | None = None


@dataclass(frozen=True)
class Written:
    """A piece of text, and how many tokens it took; ``cached``: tokens of the prompt that were in the prefix cache."""

    text: str
    num_tokens: int
    cached: int | None = None


class Backend(Protocol):
    """A model."""

    model: str
    max_model_len: int

    def write(self, wanted: Wanted) -> AsyncGenerator[Written, None]:
        """Text as it comes; closed, the model stops. Raises BackendError."""
        ...


class EngineBackend:
    """vLLM's engine in this process."""

    def __init__(self, engine: Any, model: str) -> None:
        self._engine = engine
        self.model = model
        self.max_model_len = int(engine.model_config.max_model_len)

    async def write(self, wanted: Wanted) -> AsyncGenerator[Written, None]:
        """See ``Backend``."""
        from vllm import SamplingParams, TokensPrompt
        from vllm.exceptions import VLLMValidationError
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        limits: dict[str, Any] = {}
        if wanted.expression is not None:
            limits["structured_outputs"] = StructuredOutputsParams(regex=wanted.expression)
        if TAPE in wanted.extra:  # a replay: the grammar asked for is replaced in the engine
            limits["structured_outputs"] = StructuredOutputsParams(choice=["a"])
        try:
            params = SamplingParams(**{
                "temperature": 0.0, **wanted.sampling, "max_tokens": wanted.max_tokens,
                "stop": list(wanted.stop) or None,
                "stop_token_ids": list(wanted.prompt.stop_ids), "skip_special_tokens": False,
                "output_kind": RequestOutputKind.DELTA, "extra_args": dict(wanted.extra), **limits,
            })  # fmt: skip
        except (TypeError, ValueError, VLLMValidationError) as error:
            raise BackendError(400, str(error)) from error
        prompt = TokensPrompt(prompt_token_ids=wanted.prompt.ids)
        async with aclosing(self._engine.generate(prompt, params, wanted.name)) as outputs:
            async for output in outputs:
                came = output.outputs[0]
                yield Written(came.text, len(came.token_ids), output.num_cached_tokens)


class HttpBackend:
    """A server of ``/v1/completions``. ``wait_s``: how long it may keep silent."""

    def __init__(
        self, url: str, *, model: str, api_key: str | None = None, wait_s: float = 20, max_model_len: int = 8192,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:  # fmt: skip
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self.url = url.rstrip("/").removesuffix("/v1")
        timeout = httpx.Timeout(wait_s, connect=min(5, wait_s))
        self._client = httpx.AsyncClient(base_url=self.url, headers=headers, transport=transport, timeout=timeout)
        self.model = model
        self.max_model_len = max_model_len

    async def ask(self, path: str) -> None:
        """A GET; raises httpx.HTTPError for any answer but a good one."""
        (await self._client.get(path)).raise_for_status()

    async def write(self, wanted: Wanted) -> AsyncGenerator[Written, None]:
        """See ``Backend``. Ids go as they are; without a tokenizer the pieces' texts do."""
        pieces = wanted.prompt.pieces
        known = all(piece.ids is not None for piece in pieces)
        body = {
            "model": self.model, "prompt": wanted.prompt.ids if known else "".join(piece.text for piece in pieces),
            "max_tokens": wanted.max_tokens, "stream": True, "temperature": 0.0, **wanted.sampling,
            "stop": [*wanted.stop, *wanted.prompt.stops], "skip_special_tokens": False,
        }  # fmt: skip
        if wanted.prompt.stop_ids:
            body["stop_token_ids"] = list(wanted.prompt.stop_ids)
        try:
            async with self._client.stream("POST", "/v1/completions", json=body) as response:
                if response.status_code != 200:
                    told = (await response.aread())[:300].decode("utf-8", "replace")
                    raise BackendError(502, f"{self.url}: want 200, got {response.status_code}: {told}")
                async for piece in _pieces(response):
                    yield piece
        except httpx.TimeoutException as error:
            raise BackendError(504, f"{self.url}: want an answer in time, got {type(error).__name__}") from error
        except httpx.TransportError as error:
            raise BackendError(502, f"{self.url}: want a server, got: {error or type(error).__name__}") from error


async def _pieces(response: httpx.Response) -> AsyncIterator[Written]:
    async for line in response.aiter_lines():
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or data == "[DONE]":
            continue
        try:
            choices = orjson.loads(data).get("choices") or ()
        except (orjson.JSONDecodeError, AttributeError) as error:
            raise BackendError(502, f"want events of JSON objects, got {data[:60]!r}") from error
        for choice in choices:
            yield Written(str(choice.get("text") or ""), 1)
