"""The live global store on disk: what one run shared the next one drafts from; broken files cost themselves only."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from agspec.engine.state import State
from agspec.errors import InputError
from agspec.tokens import EMPTY, Tokens
from tests.drafting import make, step, text


def opened(folder: Path, *, tokenizer: str = "t", most_tokens: int = 10_000, writes: bool = True) -> State:
    return State(folder, tokenizer=tokenizer, most_tokens=most_tokens, writes=writes)


def loaded(folder: Path, tenants: int = 9, **more: object) -> dict[str, list[list[int]]]:
    state = opened(folder, **more)  # type: ignore[arg-type]
    return {name: [output.tolist() for _, output in documents] for name, documents in state.load(tenants)}


def filled(folder: Path, *outputs: Tokens, tenant: str = "a", tail: Tokens = EMPTY) -> Path:
    """The one file of a tenant with these outputs."""
    state = opened(folder)
    for output in outputs:
        state.add(tenant, tail, output)
    (path,) = folder.glob("*.tokens")
    return path


def test_E7_what_was_shared_is_drafted_from_in_the_next_run(tmp_path: Path) -> None:
    path = filled(tmp_path / "s", text(100), text(500), tail=text(90, 10))
    assert (path.stat().st_mode & 0o777, (tmp_path / "s").stat().st_mode & 0o777) == (0o600, 0o700)
    drafter = make()
    for tenant, documents in opened(tmp_path / "s").load(9):
        assert documents[0][0].tolist() == text(90, 10).tolist()
        drafter.restore(tenant, documents)
    drafter.start("r", text(0, 5), tenant="a")
    assert step(drafter, "r", [109, 110])[:3] == [111, 112, 113]
    drafter.start("other", text(0, 5), tenant="b")
    assert step(drafter, "other", [109, 110]) == [], "another tenant's"


def test_the_tenants_written_to_last_are_loaded(tmp_path: Path) -> None:
    state = opened(tmp_path)
    for i, tenant in enumerate("abc"):
        state.add(tenant, EMPTY, text(100 * i))
    assert [*loaded(tmp_path, 2, writes=False)] == ["b", "c"]


def test_the_newest_tokens_are_kept(tmp_path: Path) -> None:
    path = filled(tmp_path, *(text(100 * i, 50) for i in range(40)))
    large = path.stat().st_size
    newest = [text(100 * i, 50).tolist() for i in (37, 38, 39)]
    assert loaded(tmp_path, most_tokens=170, writes=False)["a"] == newest
    assert path.stat().st_size == large, "another rank than the first only reads"
    assert loaded(tmp_path, most_tokens=170)["a"] == newest
    assert path.stat().st_size < large / 5
    assert (loaded(tmp_path, most_tokens=170)["a"], path.stat().st_mode & 0o777) == (newest, 0o600)


@pytest.mark.parametrize("damage", ["cut", "flipped", "garbage"])
def test_a_broken_end_is_cut_off_and_the_file_goes_on(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = filled(tmp_path, text(100), text(200))
    data = bytearray(path.read_bytes())
    if damage == "cut":
        del data[-7:]
    elif damage == "flipped":
        data[-7] ^= 1
    else:
        data += b"\xff" * 40
    path.write_bytes(data)
    want = [text(100).tolist()] if damage != "garbage" else [text(100).tolist(), text(200).tolist()]
    with caplog.at_level(logging.ERROR):
        assert loaded(tmp_path)["a"] == want
    assert "are broken and cut off" in caplog.text
    filled(tmp_path, text(300))
    assert loaded(tmp_path)["a"] == [*want, text(300).tolist()]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "first line is not a header"),
        (b"[1]\n", "first line is not a header"),
        (b'{"format":"agspec-state","version":2,"tokenizer":"t","tenant":"a"}\n', "want agspec-state version 1"),
        (b'{"format":"agspec-state","version":1,"tokenizer":"x","tenant":"a"}\n', "this model's tokenizer"),
    ],
)
def test_a_file_that_is_not_ours_is_left_as_it_is(
    tmp_path: Path, content: bytes, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = filled(tmp_path, text(100))
    path.write_bytes(content)
    state = opened(tmp_path)
    assert list(state.load(9)) == []
    state.add("a", EMPTY, text(200))
    assert path.read_bytes() == content
    assert f"{path}: want" in caplog.text
    assert line in caplog.text


def test_a_folder_in_use_or_of_no_use_is_refused(tmp_path: Path) -> None:
    first = opened(tmp_path)
    with pytest.raises(InputError, match="of one engine, got one in use"):
        opened(tmp_path)
    opened(tmp_path, writes=False)
    del first
    opened(tmp_path)
    with pytest.raises(InputError, match="want a state folder, got"):
        opened(Path(__file__))


def test_a_full_disk_ends_the_keeping_not_the_drafting(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = opened(tmp_path)
    state.add("a", EMPTY, text(100))
    (path,) = tmp_path.glob("*.tokens")
    path.unlink()
    path.mkdir()
    state.add("a", EMPTY, np.arange(5, dtype=np.int32))
    assert state.failed is not None
    state.add("b", EMPTY, text(100))
    assert len(list(tmp_path.glob("*.tokens"))) == 1
    assert caplog.text.count("state is no longer kept") == 1
