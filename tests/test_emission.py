"""Emission forms and their inverses, by table and by property."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agspec.draft.emission import Form, emissions, emit, strip_line_numbers, unescape_json

CASES = tomllib.loads((Path(__file__).parent / "cases" / "emissions.toml").read_text(encoding="utf-8"))
FORMS = st.builds(
    Form,
    st.sampled_from(["", " ", "-", "+"]),
    st.sampled_from(["none", "json"]),
    st.sampled_from(["kept", "crlf", "lf"]),
    st.sampled_from(["kept", "expanded"]),
)
TEXTS = st.text(
    st.one_of(st.sampled_from("\n\r\t \"\\'<>&é→|:-0123456789ab"), st.characters(exclude_categories=["Cs"]))
)
NUMBERINGS = {
    "cat -n": "{:6d}\t{}",
    "arrow": "{:6d}→{}",
    "pipe": "{} | {}",
    "bar": "{:03d}|{}",
    "colon": "{}:{}",
}


@pytest.mark.parametrize("case", CASES["emit"], ids=lambda case: f"{case['form']}-{case['text'][:12]!r}")
def test_emit(case: dict[str, str]) -> None:
    assert emit(case["text"], Form.named(case["form"])) == case["want"]


@pytest.mark.parametrize("case", CASES["strip"], ids=lambda case: case["name"])
def test_strip_line_numbers(case: dict[str, str]) -> None:
    assert strip_line_numbers(case["text"]) == case.get("want")


@pytest.mark.parametrize("case", CASES["unescape"], ids=lambda case: case.get("name", case["text"][:12]))
def test_unescape_json(case: dict[str, object]) -> None:
    assert unescape_json(str(case["text"]), html_safe=bool(case["html_safe"])) == case.get("want")


@given(TEXTS)
def test_json_form_decodes_back(text: str) -> None:
    escaped = emit(text, Form(encode="json"))
    assert json.loads(f'"{escaped}"') == text
    assert unescape_json(escaped) == text
    assert "\n" not in escaped


@given(TEXTS)
def test_html_safe_json_decodes_back(text: str) -> None:
    escaped = json.dumps(text)[1:-1]
    for char in "<>&'":
        escaped = escaped.replace(char, f"\\u{ord(char):04x}")
    assert unescape_json(escaped, html_safe=True) == text


@given(TEXTS.filter(bool), st.sampled_from(["-", "+", " "]))
def test_prefixed_form_loses_its_prefix(text: str, prefix: str) -> None:
    form = Form(line_prefix=prefix)
    lines = emit(text, form).split("\n")
    last = lines.pop() if text.endswith("\n") else None
    assert last in (None, "")
    assert all(line.startswith(prefix) for line in lines)
    assert "\n".join([line[1:] for line in lines] + ([""] if last == "" else [])) == text


@given(FORMS)
def test_form_names_round_trip(form: Form) -> None:
    assert Form.named(form.name) == form


@pytest.mark.parametrize("name", ["", "rawer", "json_x", "raw-lf"])
def test_unknown_form_name(name: str) -> None:
    with pytest.raises(ValueError, match="want words of json, raw"):
        Form.named(name)


@given(TEXTS.filter(lambda text: text.strip("\n") != ""), st.integers(1, 1200), st.sampled_from(sorted(NUMBERINGS)))
def test_numbered_text_loses_its_numbers(text: str, start: int, style: str) -> None:
    lines = text.removesuffix("\n").split("\n")
    if style in ("pipe", "bar", "colon") and len(lines) == 1:
        lines.append("")
        text = text.removesuffix("\n") + "\n\n"
    numbered = "\n".join(NUMBERINGS[style].format(start + i, line) for i, line in enumerate(lines))
    assert strip_line_numbers(numbered + "\n" * text.endswith("\n")) == text


@given(TEXTS, st.lists(FORMS, max_size=8))
def test_emissions_are_distinct_and_in_order(text: str, forms: list[Form]) -> None:
    made = emissions(text, forms)
    texts = [emitted for _, emitted in made]
    assert len(set(texts)) == len(texts)
    assert set(texts) == {emit(text, form) for form in forms}
    assert all(emit(text, form) == emitted for form, emitted in made)
    order = [forms.index(form) for form, _ in made]
    assert order == sorted(order)


def test_emissions_drop_what_says_the_same() -> None:
    forms = [Form.named(name) for name in ("raw", "json", "raw_lf", "raw_expanded", "plus")]
    assert [form.name for form, _ in emissions("plain", forms)] == ["raw", "plus"]
