"""Shared by the tests of corpora: a tokenizer of words, traces, what a corpus folder holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer as Backend
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from agspec.corpus import HEADS, META, ORDER, TOKENS
from agspec.messages import Message
from agspec.replay.trace import Call, Output, Trace, write_trace
from agspec.tokens import Tokenizer

NUM_WORDS = 200
WORDS = {"[UNK]": 0, "<|im_end|>": 1} | {f"w{i}": i + 2 for i in range(NUM_WORDS)}


def words_tokenizer(words: dict[str, int]) -> Tokenizer:
    backend = Backend(WordLevel(words, unk_token="[UNK]"))
    backend.pre_tokenizer = Whitespace()
    return Tokenizer("words", backend, json.loads(backend.to_str()))


def prose(seed: int, num_words: int = 30) -> str:
    return " ".join(f"w{i}" for i in np.random.default_rng(seed).integers(0, NUM_WORDS, num_words))


def trace_file(path: Path, outputs: Sequence[tuple[str, str]]) -> Path:
    ask = (Message(role="user", content="go on"),)
    calls = tuple(Call(session=session, messages=ask, output=Output(content=text)) for session, text in outputs)
    write_trace(Trace(name=path.stem, kind="test", calls=calls), path)
    return path


def content(folder: Path) -> dict[str, Any]:
    """Every byte of a corpus, but for the date."""
    info = json.loads((folder / META).read_bytes())
    del info["created"]
    return {"info": info, **{name: (folder / name).read_bytes() for name in (TOKENS, ORDER, HEADS)}}


def named(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def two_traces(tmp_path: Path) -> list[Path]:
    """18 outputs of 9 sessions in the folder ``in``, and an empty one."""
    one = [(f"task-{i % 3}", prose(i)) for i in range(12)]
    two = [("task-1#2", prose(100)), ("task-7", ""), *((f"task-{i}", prose(i)) for i in range(101, 106))]
    (tmp_path / "in").mkdir()
    return [trace_file(tmp_path / "in" / "one.jsonl", one), trace_file(tmp_path / "in" / "two.jsonl.gz", two)]
