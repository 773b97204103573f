"""Edits written in agents' formats: what counts as copied is what stands in the file, and its forms are drafted."""

from __future__ import annotations

import pytest

from agspec.scaffold import load_profiles
from agspec.tokens import load_tokenizer
from benchmarks.edits import FORMATS, Edit, numbered, planned
from benchmarks.emission import row, written

BEFORE = "".join(
    f'def area_{i}(width, height):\n    """Area {i}."""\n    return width * height\n\n\n' for i in range(12)
)
AFTER = BEFORE.replace('"""Area 3."""\n    return width', '"""Area 3."""\n    return abs(width)').replace(
    "area_8(width, height)", "area_8(width, height=1)"
)
EDIT = Edit("shapes.py", BEFORE, AFTER)


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer("embedded")


def test_hunks_hold_the_change_and_its_context():
    hunks = list(EDIT.hunks())
    assert len(hunks) == 2
    assert [line for mark, line in hunks[0] if mark != " "] == [
        "    return width * height", "    return abs(width) * height"
    ]  # fmt: skip
    assert sum(mark == " " for mark, _ in hunks[0]) == 6


def test_numbered_is_cat_n():
    assert numbered("a\n\tb\n") == "     1\ta\n     2\t\tb\n"


@pytest.mark.parametrize("name", FORMATS)
def test_copied_tokens_are_those_of_the_file(name, tokenizer):
    ((call, marked),) = planned([EDIT], FORMATS[name], tokenizer, load_profiles())
    copied = tokenizer.decode(call.tape[marked])
    assert "area_8(width, height):" in copied
    assert "height=1" not in copied
    assert "abs(" not in copied
    assert call.scaffold == name.split()[0]
    assert call.files, "the profile finds the file in what the agent was shown"


@pytest.mark.parametrize("name", FORMATS)
def test_forms_double_what_is_accepted_where_text_is_not_written_as_read(name, tokenizer):
    found = row(name, lambda change: written([EDIT], name, tokenizer, change), tokenizer)
    alone = found["workspace alone"]
    if "as read" in name:
        assert alone["with_forms"] == alone["without"] > 4
    else:
        assert alone["with_forms"] > max(2.5, 2 * alone["without"])
