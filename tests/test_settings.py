"""Settings: TOML or values in, one frozen object out, every mistake one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agspec.errors import SettingsError
from agspec.settings import Settings, make_settings, read_settings


def fails(text: str | bytes, tmp_path: Path) -> str:
    path = tmp_path / "s.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SettingsError) as caught:
        read_settings(path)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(f"{path}: ")
    return line.removeprefix(f"{path}: ")


def test_file_over_defaults(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('lookup = "suffix-tree"\nstores = ["session"]\ncost_ratio = 0.15\nmax_draft = 128\n')
    read = read_settings(path)
    assert (read.lookup, read.stores, read.cost_ratio, read.max_draft) == ("suffix-tree", ("session",), 0.15, 128)
    assert read.model_dump(exclude={"lookup", "stores", "cost_ratio", "max_draft"}) == Settings().model_dump(
        exclude={"lookup", "stores", "cost_ratio", "max_draft"}
    )


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("")
    assert read_settings(path) == Settings()


def test_budgets_are_those_promised() -> None:
    settings = Settings()
    assert (settings.session_mib, settings.workspace_mib, settings.shared_mib) == (64, 256, 512)
    assert settings.stores == ("session", "workspace", "shared", "corpus")


def test_what_a_report_prints_makes_the_same_settings() -> None:
    settings = make_settings({"lookup": "suffix-tree", "cost_ratio": 0.27, "caps": "c.toml"}, where="flags")
    assert Settings.model_validate_json(settings.model_dump_json()) == settings


def test_unknown_key_lists_the_known(tmp_path: Path) -> None:
    line = fails("max_drafts = 3\n", tmp_path)
    assert line.startswith("max_drafts: Extra inputs are not permitted; known: lookup, stores, parts, cost_ratio, ")
    assert "max_draft," in line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("max_draft = 129", "max_draft: Input should be less than or equal to 128, got 129"),
        ("max_draft = 0", "max_draft: Input should be greater than or equal to 1, got 0"),
        ("cost_ratio = 0", "cost_ratio: Input should be greater than 0, got 0"),
        ('lookup = "tree"', "lookup: Input should be 'sam' or 'suffix-tree', got 'tree'"),
        (
            'stores = ["session", "disk"]',
            "stores.1: Input should be 'session', 'workspace', 'shared' or 'corpus', got 'disk'",
        ),
        ("tokens_per_step = 63", "tokens_per_step: Input should be greater than or equal to 64, got 63"),
        (
            "session_mib = 1.5",
            "session_mib: Input should be a valid integer, got a number with a fractional part, got 1.5",
        ),
    ],
)
def test_wrong_values(text: str, line: str, tmp_path: Path) -> None:
    assert fails(text, tmp_path) == line


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    assert len(fails(f'lookup = "{"x" * 5000}"', tmp_path)) < 200


def test_not_toml(tmp_path: Path) -> None:
    assert fails("max_draft 3", tmp_path).startswith("want TOML, got: Expected '=' after a key")
    assert fails(b"\xff\xfe", tmp_path).startswith("want TOML, got: 'utf-8' codec")


def test_no_file(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.toml", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(SettingsError) as caught:
            read_settings(path)
        assert str(caught.value) == f"{path}: want a settings file, got: {reason}"


def test_flags_are_named() -> None:
    with pytest.raises(SettingsError) as caught:
        make_settings({"max_draft": "many"}, where="--max-draft")
    assert str(caught.value).startswith("--max-draft: max_draft: Input should be a valid integer")


def test_frozen_and_the_other_engine() -> None:
    settings = Settings(max_draft=7)
    attribute: Any = "max_draft"
    with pytest.raises(ValidationError):
        setattr(settings, attribute, 9)
    other = settings.with_lookup("suffix-tree")
    assert (other.lookup, other.max_draft, settings.lookup) == ("suffix-tree", 7, "sam")
