"""The embedded model: whole or not there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agspec import embedded
from agspec.errors import InputError
from agspec.tokens import load_tokenizer


def test_prepared_model_is_whole_and_has_the_tokenizer_it_says() -> None:
    folder = embedded.prepare()
    embedded.verify(folder)
    tokenizer = load_tokenizer("embedded")
    assert tokenizer.vocab_size == 49152
    assert tokenizer.end_id == 2
    assert tokenizer.decode(tokenizer.encode("def f(x):\n\treturn x")) == "def f(x):\n\treturn x"


def test_half_a_model_is_not_ready(tmp_path: Path) -> None:
    whole = embedded.prepare()
    half = tmp_path / "model"
    half.mkdir()
    sums = json.loads((whole / embedded.CHECKSUMS).read_text())
    (half / embedded.CHECKSUMS).write_text(json.dumps(sums))
    for name in list(sums)[:-1]:
        os.link(whole / name, half / name)
    assert not embedded.is_ready(half)
    with pytest.raises(InputError, match="found none or half of one: agspec model prepare"):
        embedded.verify(half)


def test_a_changed_file_is_found(tmp_path: Path) -> None:
    whole = embedded.prepare()
    copy = tmp_path / "model"
    copy.mkdir()
    sums = {
        name: value for name, value in json.loads((whole / embedded.CHECKSUMS).read_text()).items() if "json" in name
    }
    (copy / embedded.CHECKSUMS).write_text(json.dumps(sums))
    for name in sums:
        data = (whole / name).read_bytes()
        (copy / name).write_bytes(data[:-1] + b" " if name == "config.json" else data)
    with pytest.raises(InputError, match=r"config.json: want sha256 .* got another"):
        embedded.verify(copy)


def test_an_interrupted_conversion_leaves_nothing(tmp_path: Path) -> None:
    """The converter is killed by a file-size limit in the middle of writing the weights."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 22, 1 << 22))"
    code = f"{limit}; import agspec.embedded as e; e.prepare()"
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert "converting the embedded model failed" in done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
