"""A frozen corpus: a folder of memory-mapped arrays, sorted for lookup, and ``corpus.json``, which says of what.

``tokens.i32``, ``order.i32`` and ``heads.i32`` are little-endian int32; ``agspec.draft.suffix_array`` says what they
hold. ``agspec.replay.corpus`` makes, merges and verifies such folders.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agspec.draft.frozen import FrozenLookup, Sorted
from agspec.errors import InputError
from agspec.tokens import Tokenizer, Tokens

Format = Literal[2]
FORMAT: Format = 2
META = "corpus.json"
TOKENS, ORDER, HEADS = "tokens.i32", "order.i32", "heads.i32"
ITEM = 4
"""Bytes of an int32."""


class Source(BaseModel):
    """One input: its name as given, the sha256 of its content, the tokens it gave."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    sha256: str
    num_tokens: int


class Stored(BaseModel):
    """A file of the corpus."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    num_bytes: int
    sha256: str


class CorpusInfo(BaseModel):
    """``corpus.json``.

    ``tokenizer`` is a fingerprint. ``tool_wire`` is None where no agent's output is held. ``sessions`` are those whose
    outputs are held; ``excluded``: sessions that were to stay out, with the outputs left out. ``created``: a date.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    agspec_corpus: Format = FORMAT
    tokenizer: str
    tokenizer_name: str
    tool_wire: str | None
    num_tokens: int = Field(ge=1)
    num_documents: int = Field(ge=1)
    sources: tuple[Source, ...]
    sessions: tuple[str, ...]
    excluded: dict[str, int]
    files: dict[str, Stored]
    created: str

    @property
    def num_bytes(self) -> int:
        """Bytes of the arrays."""
        return sum(file.num_bytes for file in self.files.values())


def read_info(folder: Path) -> CorpusInfo:
    """What ``corpus.json`` says; InputError where there is none, of another format, or a file is missing or short."""
    try:
        text = (folder / META).read_bytes()
    except OSError as error:
        raise InputError(
            f"{folder}: want a corpus folder (agspec corpus build), got no {META}: {error.strerror}"
        ) from error
    try:
        info = CorpusInfo.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        if first["loc"] == ("agspec_corpus",):
            known = ", ".join(map(str, get_args(Format)))
            raise InputError(
                f"{folder}: want a corpus of format {known}, got {first['input']!r}: build the corpus again"
            ) from error
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(f"{folder / META}: {where}: {first['msg']}") from error
    for name in (TOKENS, ORDER, HEADS):
        wanted = info.files[name].num_bytes if name in info.files else "a size in corpus.json"
        try:
            got = (folder / name).stat().st_size
        except OSError as error:
            raise InputError(f"{folder / name}: want {wanted} bytes, got: {error.strerror}") from error
        if got != wanted:
            raise InputError(f"{folder / name}: want {wanted} bytes, got {got}: build the corpus again")
    want = ITEM * (info.num_tokens + info.num_documents + 1)
    if info.files[TOKENS].num_bytes != want:
        raise InputError(f"{folder / TOKENS}: want {want} bytes for the tokens in {META}, got {info.files[TOKENS]}")
    return info


def mapped(path: Path) -> Tokens:
    """An int32 file memory-mapped; what is written to the array stays in memory."""
    if path.stat().st_size == 0:
        return np.zeros(0, np.int32)
    return np.asarray(np.memmap(path, "<i4", "c"))


def open_corpus(folder: Path, tokenizer: Tokenizer) -> FrozenLookup:
    """The lookup of a corpus folder; InputError when it is none, broken, or made for other token ids."""
    info = read_info(folder)
    if info.tokenizer != tokenizer.fingerprint:
        raise InputError(
            f"{folder}: made for tokenizer {info.tokenizer} ({info.tokenizer_name}), the model has "
            f"{tokenizer.fingerprint} ({tokenizer.name}): build the corpus again"
        )
    arrays = Sorted(*(mapped(folder / name) for name in (TOKENS, ORDER, HEADS)))
    return FrozenLookup(arrays, num_tokens=info.num_tokens)
