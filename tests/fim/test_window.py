"""Windows of long files: within their budgets, on line borders, and still while one types."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agspec.errors import InputError
from agspec.fim.healing import heal
from agspec.fim.languages import language_of
from agspec.fim.outline import borders, closers
from agspec.fim.window import Budget, left_edge, right_part, window
from agspec.tokens import load_tokenizer

LINES = "".join(f"    value_{i} = compute({i}, 'é')\n" for i in range(10_000))


@pytest.fixture(scope="module")
def count():
    tokenizer = load_tokenizer("embedded")
    return lambda text: tokenizer.encode(text).size


def words(text: str) -> int:
    return len(text.split(" ")) if text else 0


@pytest.mark.parametrize(
    ("total", "others", "budget"),
    [
        (None, False, Budget(1800, 800, 0)), (None, True, Budget(1800, 800, 300)), (9000, True, Budget(1800, 800, 300)),
        (1000, False, Budget(700, 300, 0)), (1000, True, Budget(612, 263, 125)), (2600, False, Budget(1800, 800, 0)),
        (8, False, Budget(6, 2, 0)),
    ],
)  # fmt: skip
def test_a_smaller_total_is_shared_out(total, others, budget):
    found = Budget.of(total, others=others)
    assert found == budget
    if total is not None:
        assert found.prefix + found.suffix + found.others <= total


def test_a_total_too_small_is_an_error():
    with pytest.raises(InputError, match="window: want 8 tokens or more, got 7"):
        Budget.of(7, others=False)


def test_a_short_file_is_whole(count):
    found = window("a = 1\n", "b = 2\n", Budget(), count)
    assert (found.start, found.prefix, found.suffix) == (0, "a = 1\n", "b = 2\n")


def test_a_long_file_is_cut_on_lines_within_its_budget(count):
    middle = len(LINES) // 2
    found = window(LINES[:middle], LINES[middle:], Budget(), count)
    assert LINES[:middle].endswith(found.prefix)
    assert LINES[middle:].startswith(found.suffix)
    assert LINES[found.start - 1] == "\n"
    assert found.suffix.endswith("\n")
    assert 900 < count(found.prefix) <= 1800
    assert 600 < count(found.suffix) <= 800


def test_while_one_types_the_edge_stays_and_moves_in_steps(count):
    typed = "".join(f"    result_{i} = compute({i})\n" for i in range(100))
    edges = [left_edge(LINES[:100_000] + typed[:size], 1800, count) for size in range(0, len(typed), 7)]
    assert edges == sorted(edges)
    moves = sum(a != b for a, b in pairwise(edges))
    assert 1 <= moves <= 1 + len(typed) * 4 // (1800 * 3)


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(1, 40))
def test_whatever_the_text_the_budget_holds(text, budget):
    start = left_edge(text, budget, len)
    assert 0 <= start <= len(text)
    assert len(text) - start <= budget
    assert len(right_part(text, budget, len)) <= budget
    assert text.startswith(right_part(text, budget, len))


def test_one_long_line_is_cut_on_a_character():
    assert left_edge("漢" * 10_000, 100, lambda text: 2 * len(text)) == 9_975


def test_an_edge_goes_to_a_definition_where_one_is_near():
    text = "".join(f"def f{i}():\n    x = {i}\n    return x\n\n" for i in range(400))
    at = left_edge(text, 500, words, borders(text, language_of("python")))
    assert text[at:].startswith("def ")


def test_what_is_cut_off_below_still_closes_what_is_open():
    body = "".join(f"    f({i});\n" for i in range(400))
    text = f"class A {{\n  run() {{\n{body}  }} // run\n}}\n"
    cursor, cut = text.index("f(3)"), text.index("f(300)")
    lines = closers(text, cursor, cut, language_of("javascript"))
    assert lines == "  } // run\n}\n"
    found = window(text[:cursor], text[cursor:], Budget(suffix=200), words, closers=lines)
    assert found.suffix.endswith(lines)
    assert closers(text, cursor, cut, language_of("markdown")) == ""


@pytest.mark.parametrize(
    ("prefix", "suffix", "kept"),
    [
        ("x = imp", "ort", ("x = ", "imp")),
        ("x = imp", "", ("x = imp", "")),
        ("x = imp ", "ort", ("x = imp ", "")),
        ("x.", "name", ("x.", "")),
        ("größe_", "n", ("größe_", "")),
        ("x = größe_", "n", ("x = ", "größe_")),
        ("x = " + "a" * 40, "b", ("x = " + "a" * 40, "")),
    ],
)
def test_H14_a_begun_word_is_left_to_the_model(prefix, suffix, kept):
    assert heal(prefix, suffix) == kept
    assert "".join(heal(prefix, suffix)) == prefix
