"""How each API says what was completed, whole and in a stream, exactly as its clients read it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

from agspec.serve.events import event
from agspec.serve.fim.service import Done

DONE = b"data: [DONE]\n\n"


class Shape(Protocol):
    """One API's answers. ``index``: which of several completions."""

    last: bytes

    def whole(self, text: str, done: Done) -> dict[str, Any]: ...
    def piece(self, text: str, index: int) -> bytes: ...
    def end(self, done: Done, index: int) -> bytes: ...


def finish(done: Done) -> str:
    """By OpenAI's names."""
    return "length" if done.reason == "length" else "stop"


def usage(done: Done) -> dict[str, Any]:
    """By OpenAI's names."""
    return {
        "prompt_tokens": done.num_prompt_tokens, "completion_tokens": done.num_tokens,
        "total_tokens": done.num_prompt_tokens + done.num_tokens,
        "prompt_tokens_details": {"cached_tokens": done.num_cached_tokens},
    }  # fmt: skip


@dataclass(frozen=True)
class _Named:
    """``name``: the completion's."""

    name: str
    model: str
    last = DONE


class Completions(_Named):
    """OpenAI's text completions: Tabby reads ``choices[0].text`` and stops at ``finish_reason``."""

    def whole(self, text: str, done: Done) -> dict[str, Any]:
        """See ``Shape``."""
        return {**self._head, "choices": [_text(text, 0, finish(done))], "usage": usage(done)}

    def piece(self, text: str, index: int) -> bytes:
        """See ``Shape``."""
        return event({**self._head, "choices": [_text(text, index, None)]})

    def end(self, done: Done, index: int) -> bytes:
        """See ``Shape``."""
        return event({**self._head, "choices": [_text("", index, finish(done))], "usage": usage(done)})

    @property
    def _head(self) -> dict[str, Any]:
        return {"id": self.name, "object": "text_completion", "created": int(time.time()), "model": self.model}


class Mistral(_Named):
    """Mistral's: as chat completions."""

    def whole(self, text: str, done: Done) -> dict[str, Any]:
        """See ``Shape``."""
        message = {"role": "assistant", "content": text, "tool_calls": None}
        choice = {"index": 0, "message": message, "finish_reason": finish(done)}
        return {**self._head("chat.completion"), "choices": [choice], "usage": usage(done)}

    def piece(self, text: str, index: int) -> bytes:
        """See ``Shape``."""
        delta = {"role": "assistant", "content": text}
        choice = {"index": index, "delta": delta, "finish_reason": None}
        return event({**self._head("chat.completion.chunk"), "choices": [choice]})

    def end(self, done: Done, index: int) -> bytes:
        """See ``Shape``."""
        choice = {"index": index, "delta": {"content": ""}, "finish_reason": finish(done)}
        return event({**self._head("chat.completion.chunk"), "choices": [choice], "usage": usage(done)})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.name, "object": kind, "created": int(time.time()), "model": self.model}


class Infill(_Named):
    """llama.cpp's: no id, no end marker; timings as llama.vim shows them."""

    last = b""

    def whole(self, text: str, done: Done) -> dict[str, Any]:
        """See ``Shape``."""
        prompt_ms = (done.first_ms or done.total_ms) - done.prepared_ms
        predicted_ms = done.total_ms - (done.first_ms or done.total_ms)
        fresh = done.num_prompt_tokens - done.num_cached_tokens
        return {
            "index": 0, "content": text, "tokens": [], "stop": True, "id_slot": 0, "model": self.model,
            "tokens_predicted": done.num_tokens, "tokens_evaluated": done.num_prompt_tokens,
            "tokens_cached": done.num_cached_tokens, "truncated": False,
            "stop_type": "limit" if done.reason == "length" else "eos", "stopping_word": "",
            "timings": {**_timing("prompt", fresh, prompt_ms), **_timing("predicted", done.num_tokens, predicted_ms)},
        }  # fmt: skip

    def piece(self, text: str, index: int) -> bytes:
        """See ``Shape``."""
        return event({"index": index, "content": text, "tokens": [], "stop": False})

    def end(self, done: Done, index: int) -> bytes:
        """See ``Shape``."""
        return event(self.whole("", done))


class Autocomplete(_Named):
    """Our own: the text, and where the time went."""

    def whole(self, text: str, done: Done) -> dict[str, Any]:
        """See ``Shape``."""
        first = done.first_ms if done.first_ms is not None else done.total_ms
        latency = {"total": done.total_ms, "prepare": done.prepared_ms, "first": first}
        return {
            "completion": text, "model": self.model, "finish_reason": done.reason,
            "latency_ms": {name: round(ms, 2) for name, ms in latency.items()}, "usage": usage(done),
        }  # fmt: skip

    def piece(self, text: str, index: int) -> bytes:
        """See ``Shape``."""
        return event({"completion": text})

    def end(self, done: Done, index: int) -> bytes:
        """See ``Shape``."""
        return event(self.whole("", done))


class Tasks(_Named):
    """RWKV servers': several at once, told apart by their index."""

    def whole(self, text: str, done: Done) -> dict[str, Any]:
        """One of the choices."""
        return {"message": {"role": "assistant", "content": text}, "finish_reason": finish(done)}

    def piece(self, text: str, index: int) -> bytes:
        """See ``Shape``."""
        return event({"object": "chat.completion.chunk", "choices": [{"index": index, "delta": {"content": text}}]})

    def end(self, done: Done, index: int) -> bytes:
        """See ``Shape``."""
        choice = {"index": index, "delta": {}, "finish_reason": finish(done)}
        return event({"object": "chat.completion.chunk", "choices": [choice]})


def _text(text: str, index: int, reason: str | None) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": reason}


def _timing(name: str, number: int, ms: float) -> dict[str, float]:
    each = ms / number if number else 0.0
    return {
        f"{name}_n": number, f"{name}_ms": round(ms, 3), f"{name}_per_token_ms": round(each, 3),
        f"{name}_per_second": round(1000 / each, 3) if each else 0.0,
    }  # fmt: skip
