"""Token arrays and tokenizers: what is taken, what is barred, and one line where it is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from agspec.errors import InputError, TokensError
from agspec.tokens import as_tokens, load_tokenizer

ADDED: list[tuple[str, bool]] = [
    ("<|endoftext|>", True),
    ("<|im_end|>", True),
    ("<tool_call>", False),
    ("</think>", False),
]


def write(folder: Path, added: list[tuple[str, bool]] = ADDED) -> Path:
    """A byte-level tokenizer without merges: 256 bytes and the added tokens."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    backend = tokenizers.Tokenizer(tokenizers.models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    for text, special in added:
        token = tokenizers.AddedToken(text, special=special, normalized=False)
        (backend.add_special_tokens if special else backend.add_tokens)([token])
    path = folder / "tokenizer.json"
    backend.save(str(path))
    return path


def test_as_tokens() -> None:
    for values in ([3, 1], np.array([3, 1], np.int64), np.array([[3, 9], [1, 9]], np.uint16)[:, 0], (3, 1)):
        tokens = as_tokens(values)
        assert tokens.dtype == np.int32
        assert tokens.flags.c_contiguous
        assert tokens.tolist() == [3, 1]
    assert as_tokens([]).shape == (0,)
    assert as_tokens([]).dtype == np.int32


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([0.5], "want int32 1-D, got float64 1-D"),
        (np.zeros((2, 2), np.int32), "want int32 1-D, got int32 2-D"),
        (np.zeros((0, 2), np.int32), "want int32 1-D, got int32 2-D"),
        (5, "want int32 1-D, got int64 0-D"),
        ([True], "want int32 1-D, got bool 1-D"),
    ],
)
def test_not_tokens(values: Any, line: str) -> None:
    with pytest.raises(TokensError) as caught:
        as_tokens(values)
    assert str(caught.value) == line


@pytest.mark.parametrize("value", [2**31, 2**40 + 7, -(2**31) - 1])
def test_an_id_that_does_not_fit_is_not_wrapped(value: int) -> None:
    with pytest.raises(TokensError):
        as_tokens([1, value])
    with pytest.raises(TokensError):
        as_tokens(np.array([1, value], np.int64))


def test_what_drafting_knows_of_a_tokenizer(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write(tmp_path))
    ids = {text: 256 + i for i, (text, _) in enumerate(ADDED)}
    assert tokenizer.vocab_size == 260
    assert tokenizer.special_ids == {256, 257}
    assert tokenizer.barred_ids.tolist() == [256, 257, ids["</think>"]], "<tool_call> is text"
    assert tokenizer.end_id == ids["<|im_end|>"]
    assert tokenizer.encode("a<|im_end|><tool_call>").tolist()[1:] == [257, 258]
    assert tokenizer.encode("").dtype == np.int32
    assert tokenizer.encode("").size == 0


@given(st.text(st.one_of(st.sampled_from("ab \n\té→"), st.characters(exclude_categories=["Cs"]))))
def test_text_comes_back(text: str) -> None:
    tokenizer = test_text_comes_back.tokenizer  # type: ignore[attr-defined]
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.fixture(autouse=True, scope="module")
def _tokenizer(tmp_path_factory: pytest.TempPathFactory) -> None:
    test_text_comes_back.tokenizer = load_tokenizer(write(tmp_path_factory.mktemp("t")))  # type: ignore[attr-defined]


def test_a_folder_is_its_tokenizer(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert load_tokenizer(tmp_path).fingerprint == load_tokenizer(path).fingerprint
    assert load_tokenizer(str(tmp_path)).name == str(tmp_path)


def test_fingerprint_tells_ids_apart(tmp_path: Path) -> None:
    first = load_tokenizer(write(tmp_path)).fingerprint
    assert len(first) == 16
    assert load_tokenizer(write(tmp_path, ADDED[::-1])).fingerprint != first
    assert load_tokenizer(write(tmp_path)).fingerprint == first


def test_a_tokenizer_without_an_end(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write(tmp_path, []))
    with pytest.raises(InputError) as caught:
        tokenizer.end_id  # noqa: B018
    assert str(caught.value).startswith(f"tokenizer {tmp_path}")
    assert str(caught.value).endswith("found none")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"model": {"type": "BPE"}}', b"\xff\xfe"])
def test_a_broken_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_tokenizer(path)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(f"want a tokenizer.json, got {path}: ")
    assert len(line) > len(f"want a tokenizer.json, got {path}: ")


def test_a_file_cut_short(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"want a tokenizer\.json, got "):
        load_tokenizer(path)


@pytest.mark.parametrize("name", ["nothing.json", "/nothing/here", "a/b/c", "word"])
def test_no_such_file(name: str) -> None:
    with pytest.raises(InputError) as caught:
        load_tokenizer(name)
    want = "want a tokenizer.json, its folder, 'embedded' or a hub name"
    assert str(caught.value) == f"{want}, got {name}: no such file"


def test_folder_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_tokenizer(tmp_path)
    assert "no such file" in str(caught.value)


def test_hub_name_without_network(tmp_path: Path) -> None:
    """In a process of its own: the hub's library reads its settings once."""
    code = (
        "from agspec.errors import InputError; from agspec.tokens import load_tokenizer\n"
        "try: load_tokenizer('agspec-nobody/none')\nexcept InputError as error: print(repr(str(error)))"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("'tokenizer agspec-nobody/none is no file and not to be had from the hub: ")
    assert "\\n" not in done.stdout


def test_the_spec_is_what_the_file_says(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert load_tokenizer(path).spec == json.loads(path.read_text("utf-8"))
