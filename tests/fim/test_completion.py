"""Where completions end and what is taken off them; streamed in any pieces, the same text."""

from __future__ import annotations

import gzip
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agspec.fim.completion import Completion
from agspec.fim.languages import language_of, open_brackets
from agspec.fim.stopping import Cursor
from tests.support import SHARED, needs_shared

STOPS = ("<|fim_prefix|>", "<|file_sep|>", "<|endoftext|>")
PYTHON, JS, TEXT = language_of("python"), language_of("javascript"), language_of("markdown")
CASES = [
    # (name, prefix, suffix, language, what the model writes, what is shown)
    ("one line where text stands behind", "x = ", " + 1\n", PYTHON, "y\nz = 3\n", "y"),
    ("a line with its end before a line", "a = 1\n", "c = 3\n", PYTHON, "b = 2\nd = 4\n", "b = 2\n"),
    ("H9 a bracket that stands already", "numpy.array(", ")\n", PYTHON, "[1,2])", "[1,2]"),
    ("H9 a bracket that is needed", "f(g(", ")\n", PYTHON, "x))", "x)"),
    ("a bracket in a string does not count", "f(", ")\n", PYTHON, "')')", "')'"),
    ("brackets the suffix does not close", "f(g(", "\n", PYTHON, "x))\n\nmore", "x))"),
    ("a block's closing line", "function f() {\n  ", "\n}\n", JS, "return 1;\n}\n\nfunction g() {", "return 1;"),
    ("blank line", "def f():\n    ", "", PYTHON, "x = 1\n\n    y = 2\n", "x = 1"),
    (
        "out of the block",
        "def f():\n    if x:\n        ",
        "\n",
        PYTHON,
        "a()\n        b()\n    c()\n",
        "a()\n        b()",
    ),
    ("out of the block, after a colon", "def f():", "\n", PYTHON, "\n    return 1\ng()\n", "\n    return 1"),
    ("a special token's text", "x = ", "\n", PYTHON, "1<|file_sep|>other", "1"),
    ("a special token's begin alone is text", "x = a ", "\n", PYTHON, "<|f", "<|f"),
    ("H2 no half character", "x = '", "'\n", PYTHON, "é\ufffd", "é"),
    ("H3 a fence around all of it", "x = ", "\n", PYTHON, "```python\n1 + 1\n```\nThis adds.", "1 + 1"),
    ("a fence in prose", "Run:\n", "", TEXT, "```\nmake\n```\n", "```\nmake\n```"),
    ("H11 no second indentation", "if x:\n    ", "\n", PYTHON, "    return 1\n", "return 1"),
    ("no second space", "return ", "\n", PYTHON, " x", "x"),
    ("a line that stands in the suffix", "a = 1\n", "\nreturn a\n", PYTHON, "b = 2\nreturn a\n", "b = 2"),
    ("the line above again", "x = 1\n", "\n", PYTHON, "x = 1\n", ""),
    ("nothing but blanks", "x", "\n", PYTHON, "  \n \n", ""),
    ("no comment marker ends code", "x = 1 ", "\n", JS, "// one\n", "// one"),
    ("a sentence", "It works. ", "", TEXT, "It is fast. And small.", "It is fast."),
    ("carriage returns", "x = ", "\r\ny = 2\r\n", PYTHON, "1\r\nz = 3\r\n", "1"),
    ("emoji and combining marks", "s = '", "'\n", PYTHON, "👩‍💻e\u0301'", "👩‍💻e\u0301"),
]


def completed(cursor: Cursor, text: str, cuts=(), **more) -> str:
    found = Completion(cursor, stops=STOPS, **more)
    at, shown = 0, ""
    for cut in [*sorted(cuts), len(text)]:
        shown += found.feed(text[at:cut])
        at = cut
    shown += found.end()
    assert shown == found.text
    return shown


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_case(case):
    _, prefix, suffix, language, written, shown = case
    cursor = Cursor(prefix, suffix, language)
    assert completed(cursor, written) == shown
    assert completed(cursor, written, range(1, len(written))) == shown


pieces = st.lists(
    st.sampled_from(["x", " ", "\n", "    ", "(", ")", "}", "{", "'", "```", "<|file", "<|file_sep|>", "\ufffd", "#",
                     ". ", "return a", "\r\n", "é"]),
    max_size=12,
).map("".join)  # fmt: skip


@settings(deadline=None)
@given(st.data(), pieces, pieces, pieces, st.sampled_from([PYTHON, JS, TEXT]), st.sampled_from(["", "x", "return"]))
def test_whatever_is_written_every_cutting_shows_the_same(data, prefix, suffix, written, language, typed):
    cursor = Cursor(prefix, suffix, language, data.draw(st.sampled_from([None, True, False])))
    cuts = data.draw(st.lists(st.integers(0, len(written)), max_size=6))
    whole = completed(cursor, written, typed=typed)
    assert completed(cursor, written, cuts, typed=typed) == whole
    assert "<|file_sep|>" not in whole or "<|file_sep|>" in prefix + suffix
    assert not whole.endswith("\ufffd")


@pytest.mark.parametrize(
    ("typed", "written", "shown", "reason"),
    [
        ("pri", "print(x)", "nt(x)", "stop"),
        ("pro", "print(x)", "", "typed"),
        ("print(x)", "print(x)", "", "stop"),
        ("print(x) #", "print(x)", "", "typed"),
    ],
)
def test_what_was_typed_meanwhile_is_taken_off(typed, written, shown, reason):
    found = Completion(Cursor("", "\n", PYTHON), typed=typed)
    assert (found.feed(written) + found.end(), found.reason) == (shown, reason)


def test_H14_a_healed_word_is_taken_off_and_another_word_is_no_completion():
    cursor = Cursor("x = imp", "ort\n", PYTHON)
    assert completed(cursor, "important_thing", healed="imp") == "ortant_thing"
    assert completed(cursor, "export", healed="imp") == ""


def test_an_ended_completion_says_so_at_once():
    found = Completion(Cursor("x = ", "\ny\n", PYTHON))
    assert not found.ended
    assert (found.feed("1"), found.ended) == ("1", False)
    assert (found.feed("\nz"), found.ended, found.reason) == ("", True, "stop")
    assert found.feed("more") == ""


@pytest.mark.parametrize(
    ("text", "closed", "opened"),
    [
        ("f(a, [b", [], ["(", "["]), ("b])\n}", ["]", ")", "}"], []), ("'('  # (\n(", [], ["("]),
        ('"""(\n"""(', [], ["("]), ("'it\n(", [], ["("]), ("(]", [], ["("]),
    ],
)  # fmt: skip
def test_brackets_in_strings_and_comments_do_not_count(text, closed, opened):
    assert open_brackets(text, PYTHON) == (closed, opened)


CONTINUATIONS = ("suffix", "indented", "code", "markers", "prose")


def continuation(kind: str, suffix: str, rng: random.Random) -> str:
    if kind == "suffix":
        return suffix
    if kind == "indented":
        return "".join(f"{' ' * rng.choice([0, 4, 8])}y_{i} = f(x[{i}])\n" for i in range(4))
    if kind == "code":
        return "\n\ndef other(a, b):\n    return a + b\n"
    if kind == "markers":
        return "<|endoftext|><|fim_prefix|>def"
    return "This line sums the values) of the list.\n```\n"


@needs_shared
def test_the_reference_comes_out_of_what_models_write_on():
    """human-eval-infilling, single lines: the middle and any continuation, fed in any pieces (issue 6, 5.6.2)."""
    file = SHARED / "fim" / "HumanEval-SingleLineInfilling.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    rng = random.Random(0)
    exact = doubled = 0
    for number, row in enumerate(rows):
        cursor = Cursor(row["prompt"], row["suffix"], PYTHON, single=True)
        middle = row["canonical_solution"]
        written = middle + continuation(CONTINUATIONS[number % len(CONTINUATIONS)], row["suffix"], rng)
        cuts = sorted(rng.randrange(len(written)) for _ in range(8))
        shown = completed(cursor, written)
        assert completed(cursor, written, cuts) == shown
        exact += shown == middle
        closer = shown.rstrip()[-1:]
        doubled += shown != middle and closer in ")]}" and closer != "" and row["suffix"].lstrip().startswith(closer)
    assert len(rows) == 1033
    assert exact >= 0.97 * len(rows)
    assert doubled == 0
