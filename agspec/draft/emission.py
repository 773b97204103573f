"""Text as the agent read it -> text as the model will write it. Pure: strings in, strings out.

A text is first freed of what the display added (line numbers, JSON escapes) and then rendered in
each form in which an edit format would carry it. A form is text; whoever stores it tokenises the
whole form, because tokens straddle line starts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

LinePrefix = Literal["", " ", "-", "+"]
Encode = Literal["none", "json"]
Newline = Literal["kept", "crlf", "lf"]
Tabs = Literal["kept", "expanded"]

_PREFIX_NAMES: dict[str, LinePrefix] = {"raw": "", "space": " ", "minus": "-", "plus": "+"}
_NEWLINES: dict[str, Newline] = {"crlf": "crlf", "lf": "lf"}
_PREFIX_WORDS: dict[LinePrefix, str] = {prefix: name for name, prefix in _PREFIX_NAMES.items()}


@dataclass(frozen=True, slots=True)
class Form:
    """How a text is written out; applied in the order newline, tabs, line prefix, encoding.

    >>> Form(line_prefix="-", encode="json").name
    'json_minus'
    >>> Form.named("raw_lf")
    Form(line_prefix='', encode='none', newline='lf', tabs='kept')
    """

    line_prefix: LinePrefix = ""
    encode: Encode = "none"
    newline: Newline = "kept"
    tabs: Tabs = "kept"

    @property
    def name(self) -> str:
        """Short name, the one profiles and reports use."""
        parts = ["json"] if self.encode == "json" else []
        if self.line_prefix or not parts:
            parts.append(_PREFIX_WORDS[self.line_prefix])
        parts += [word for word in (self.newline, self.tabs) if word != "kept"]
        return "_".join(parts)

    @classmethod
    def named(cls, name: str) -> Form:
        """The form of a short name; ValueError for another word."""
        form = cls()
        for word in name.split("_"):
            if word == "json":
                form = cls(form.line_prefix, "json", form.newline, form.tabs)
            elif word in _PREFIX_NAMES:
                form = cls(_PREFIX_NAMES[word], form.encode, form.newline, form.tabs)
            elif word in _NEWLINES:
                form = cls(form.line_prefix, form.encode, _NEWLINES[word], form.tabs)
            elif word == "expanded":
                form = cls(form.line_prefix, form.encode, form.newline, "expanded")
            else:
                raise ValueError(f"want words of json, {', '.join(_PREFIX_NAMES)}, crlf, lf, expanded, got {name!r}")
        return form


def emit(text: str, form: Form) -> str:
    """``text`` as the model would write it in ``form``.

    >>> emit("a\\n\\tb\\n", Form(line_prefix="+"))
    '+a\\n+\\tb\\n'
    >>> emit('say "é"\\n', Form(encode="json"))
    'say \\\\"é\\\\"\\\\n'
    """
    if form.newline != "kept":
        text = text.replace("\r\n", "\n")
        if form.newline == "crlf":
            text = text.replace("\n", "\r\n")
    if form.tabs == "expanded":
        text = text.expandtabs()
    if form.line_prefix and text:
        text = form.line_prefix + text.replace("\n", "\n" + form.line_prefix)
        if text.endswith("\n" + form.line_prefix):
            text = text[: -len(form.line_prefix)]
    return json.dumps(text, ensure_ascii=False)[1:-1] if form.encode == "json" else text


def emissions(text: str, forms: Iterable[Form]) -> list[tuple[Form, str]]:
    """Each form of ``text`` that differs from those before it."""
    seen: dict[str, Form] = {}
    for form in forms:
        seen.setdefault(emit(text, form), form)
    return [(form, emitted) for emitted, form in seen.items()]


_RAW_HTML = re.compile(r"[<>&']")


def unescape_json(text: str, *, html_safe: bool = False) -> str | None:
    """What the inside of a JSON string says; None when ``text`` is not one.

    ``html_safe`` names the writer that escapes ``< > & '`` too (Jinja's tojson): a text that has
    one of them bare was not escaped by it, and is refused.

    >>> unescape_json("if a \\\\u003c b:\\\\n", html_safe=True)
    'if a < b:\\n'
    >>> unescape_json("if a < b:", html_safe=True) is None
    True
    """
    if html_safe and _RAW_HTML.search(text):
        return None
    try:
        decoded = json.loads(f'"{text}"')
    except json.JSONDecodeError:
        return None
    return decoded if isinstance(decoded, str) else None


@dataclass(frozen=True)
class _Numbering:
    """One way to number lines. ``aligned`` ones are told apart by their width; others need two lines."""

    prefix: re.Pattern[str]
    aligned: bool


_NUMBERINGS = (
    _Numbering(re.compile(r"(?=[ \d]{6})[ ]{0,5}(\d+)\t"), aligned=True),  # cat -n, nl
    _Numbering(re.compile(r"[ ]*(\d+)→"), aligned=True),
    _Numbering(re.compile(r"[ ]*(\d+) \|(?: |$)"), aligned=False),
    _Numbering(re.compile(r"(\d+)\|"), aligned=False),
    _Numbering(re.compile(r"(\d+)[:-]"), aligned=False),  # grep -n, its context lines with a dash
)
_PROBE = 20
"""A numbering shows in the first lines or not at all."""


def strip_line_numbers(text: str) -> str | None:
    """``text`` without its line numbers; None when it has none.

    Two lines in three must carry a number of the same style and the numbers must rise; lines
    without one stay, except grep's ``--``.

    >>> strip_line_numbers("     1\\tdef f():\\n     2\\t\\treturn\\n")
    'def f():\\n\\treturn\\n'
    """
    lines = text.split("\n")
    for numbering in _NUMBERINGS:
        if any(map(numbering.prefix.match, lines[:_PROBE])):
            stripped = _strip(lines, numbering)
            if stripped is not None:
                return stripped
    return None


def _strip(lines: list[str], numbering: _Numbering) -> str | None:
    kept: list[str] = []
    numbers: list[int] = []
    others = 0
    for line in lines:
        match = numbering.prefix.match(line)
        if match:
            numbers.append(int(match[1][:12]))
            kept.append(line[match.end() :])
        elif not line.strip():
            kept.append("" if numbering.aligned else line)
        elif line != "--" or numbering.aligned:
            others += 1
            kept.append(line)
    rising = sum(a < b for a, b in pairwise(numbers))
    enough = len(numbers) >= (1 if numbering.aligned else 2) and len(numbers) >= 2 * others
    return "\n".join(kept) if enough and rising * 10 >= (len(numbers) - 1) * 9 else None
