"""What a request for a completion says, whatever API it came by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agspec.fim.context import Symbol
from agspec.fim.prompt import OtherFile
from agspec.serve.bodies import BadRequest

MOST_TOKENS = 256
"""Of a completion, where the request does not say."""
Kind = TypeVar("Kind", bound=BaseModel)
SAMPLED = ("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty")


@dataclass(frozen=True)
class Asked:
    """A completion between ``prefix`` and ``suffix``.

    ``after``: text that the model goes on with, as if it had written it (/infill's prompt); ``total``: tokens that
    prompt and others may have; ``single``: whether one line is wanted, None: told from the cursor; ``editor``: whose
    newer request ends this one; ``typed``: what was typed since it was made; ``sampling``: as the engine takes it.
    """

    prefix: str
    suffix: str
    model: str | None = None
    max_tokens: int = MOST_TOKENS
    stop: tuple[str, ...] = ()
    stream: bool = False
    sampling: Mapping[str, Any] = field(default_factory=dict)
    language: str | None = None
    path: str | None = None
    repository: str | None = None
    others: tuple[OtherFile, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    editor: str | None = None
    typed: str = ""
    after: str = ""
    single: bool | None = None
    total: int | None = None
    most_seconds: float | None = None


class _Body(BaseModel):
    model_config = ConfigDict(extra="allow")

    model: str | None = None
    stream: bool = False
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = None
    min_p: float | None = Field(None, ge=0, le=1)
    seed: int | None = None
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    stop: str | list[str] | None = None
    language: str | None = None
    path: str | None = None
    editor_id: str | None = None
    typed: str = ""
    multi_line: bool | None = None
    window: int | None = Field(None, ge=8)

    def asked(self, **more: Any) -> Asked:
        """With what the API says in its own way."""
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        sampling = {name: getattr(self, name) for name in SAMPLED if getattr(self, name) is not None}
        return Asked(**{
            "model": self.model, "stop": tuple(filter(None, stop)), "stream": self.stream, "sampling": sampling,
            "language": self.language, "path": self.path, "editor": self.editor_id, "typed": self.typed,
            "total": self.window, "single": None if self.multi_line is None else not self.multi_line, **more,
        })  # fmt: skip


class _Completions(_Body):
    prompt: str
    suffix: str = ""
    max_tokens: int | None = Field(None, ge=1)
    n: int | None = None
    best_of: int | None = None
    echo: bool | None = None
    logprobs: int | bool | None = None


class _Mistral(_Body):
    prompt: str
    suffix: str | None = None
    max_tokens: int | None = Field(None, ge=1)
    min_tokens: int | None = Field(None, ge=0)
    random_seed: int | None = None


class _Extra(BaseModel):
    filename: str = ""
    text: str = ""


class _Infill(_Body):
    input_prefix: str = ""
    input_suffix: str = ""
    input_extra: list[_Extra] = []
    prompt: str = ""
    n_predict: int | None = None
    t_max_predict_ms: float | None = None


class _Open(BaseModel):
    path: str
    text: str


class _Symbol(BaseModel):
    path: str = ""
    text: str


class _Autocomplete(_Body):
    prefix: str
    suffix: str = ""
    max_tokens: int = Field(48, ge=1)
    temperature: float | None = Field(0.1, ge=0, le=2)
    open_files: list[_Open] = []
    symbols: list[_Symbol] = []
    repository: str | None = None


class _Tasks(_Body):
    prefix: list[str]
    suffix: list[str]
    max_tokens: int = Field(MOST_TOKENS, ge=1)


def completions(body: Any) -> Asked:
    """``/v1/completions`` with ``suffix`` (OpenAI, DeepSeek, Tabby, Continue)."""
    told = _read(_Completions, body)
    for name in ("n", "best_of"):
        if getattr(told, name) not in (None, 1):
            raise BadRequest(name, f"want 1 with suffix, got {getattr(told, name)}")
    for name in ("echo", "logprobs"):
        if getattr(told, name) not in (None, False):
            raise BadRequest(name, "want none with suffix, got one")
    return told.asked(prefix=told.prompt, suffix=told.suffix, max_tokens=told.max_tokens or MOST_TOKENS)


def mistral(body: Any) -> Asked:
    """``/v1/fim/completions``."""
    told = _read(_Mistral, body)
    if told.min_tokens:
        raise BadRequest("min_tokens", f"want 0, got {told.min_tokens}: a completion ends where the code does")
    asked = told.asked(prefix=told.prompt, suffix=told.suffix or "", max_tokens=told.max_tokens or MOST_TOKENS)
    if told.random_seed is None:
        return asked
    return replace(asked, sampling={**asked.sampling, "seed": told.random_seed})


def infill(body: Any) -> Asked:
    """``/infill`` of llama.cpp (llama.vim, llama.vscode): ``prompt`` stands after the middle's marker."""
    told = _read(_Infill, body)
    most = told.n_predict if told.n_predict is not None and told.n_predict > 0 else MOST_TOKENS
    return told.asked(
        prefix=told.input_prefix, suffix=told.input_suffix, after=told.prompt, max_tokens=most,
        others=tuple(OtherFile(extra.filename or "untitled", extra.text) for extra in told.input_extra if extra.text),
        most_seconds=told.t_max_predict_ms / 1000 if told.t_max_predict_ms and told.t_max_predict_ms > 0 else None,
    )  # fmt: skip


def autocomplete(body: Any) -> Asked:
    """``/v1/autocomplete``, our own."""
    told = _read(_Autocomplete, body)
    return told.asked(
        prefix=told.prefix, suffix=told.suffix, max_tokens=told.max_tokens, repository=told.repository,
        others=tuple(OtherFile(file.path, file.text) for file in told.open_files if file.path != told.path),
        symbols=tuple(Symbol(symbol.path, symbol.text) for symbol in told.symbols),
    )  # fmt: skip


def tasks(body: Any) -> list[Asked]:
    """``/v1/tasks/fim`` as RWKV's servers have it: lists of prefixes and suffixes, one completion each."""
    told = _read(_Tasks, body)
    if len(told.prefix) != len(told.suffix) or not told.prefix:
        got = f"{len(told.prefix)} and {len(told.suffix)}"
        raise BadRequest("suffix", f"want as many suffixes as prefixes, and one or more, got {got}")
    pairs = zip(told.prefix, told.suffix, strict=True)
    return [told.asked(prefix=prefix, suffix=suffix, max_tokens=told.max_tokens) for prefix, suffix in pairs]


def _read(kind: type[Kind], body: Any) -> Kind:
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "body"
        raise BadRequest(where, f"{first['msg'].lower()}, got {first['input']!a:.60}") from error
