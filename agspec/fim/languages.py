"""Languages by name or path: data in languages.toml."""

from __future__ import annotations

import re
import tomllib
from functools import cache, cached_property
from importlib import resources

from pydantic import BaseModel, ConfigDict

PAIRS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = frozenset(PAIRS.values())


class Language(BaseModel):
    """See the head of languages.toml for the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    name: str
    extensions: tuple[str, ...]
    grammar: str | None = None
    comment: str
    strings: tuple[str, ...]
    blocks: tuple[tuple[str, str], ...] = ()
    indented: bool = False
    prose: bool = False
    definitions: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Comments and strings, whole where they end, and brackets: what to look at when brackets are counted."""
        parts = [rf"{re.escape(begin)}[\s\S]*?(?:{re.escape(end)}|\Z)" for begin, end in self.blocks]
        if self.comment and self.comment not in [begin for begin, _ in self.blocks]:
            parts.append(rf"{re.escape(self.comment)}[^\n]*")
        for mark in self.strings:
            long = len(mark) > 1 or mark == "`"
            inside, end = (r"[\s\S]", r"\Z") if long else (r"[^\n]", r"(?=\n)|\Z")
            quote = re.escape(mark)
            parts.append(rf"{quote}(?:\\[\s\S]|(?!{quote}){inside})*(?:{quote}|{end})")
        return re.compile("|".join([*parts, r"[(\[{)\]}]"]))


@cache
def _languages() -> dict[str, Language]:
    text = resources.files(__package__).joinpath("languages.toml").read_text("utf-8")
    return {name: Language.model_validate({"name": name, **table}) for name, table in tomllib.loads(text).items()}


def language_of(name: str | None = None, path: str | None = None) -> Language:
    """By its name (or an editor's name for it, or an extension), else by the path; "unknown" where neither tells."""
    known = _languages()
    for told in (name, path.rpartition(".")[2] if path and "." in path else None):
        key = (told or "").lower().removeprefix(".")
        key = {"javascriptreact": "javascript", "typescriptreact": "typescript", "bash": "shell", "sh": "shell",
               "c++": "cpp", "c#": "csharp", "plaintext": "markdown", "golang": "go"}.get(key, key)  # fmt: skip
        if key in known:
            return known[key]
        for language in known.values():
            if key and key in language.extensions:
                return language
    return known["unknown"]


def open_brackets(text: str, language: Language) -> tuple[list[str], list[str]]:
    """(closers in ``text`` whose openers stand before it, openers that it leaves open), each in order.

    Brackets in strings and comments do not count; nor does one that closes another kind than is open.
    """
    closed: list[str] = []
    opened: list[str] = []
    if language.prose:
        return closed, opened
    for found in language.pattern.finditer(text):
        bracket = found[0]
        if bracket in PAIRS:
            opened.append(bracket)
        elif bracket in CLOSERS:
            if not opened:
                closed.append(bracket)
            elif PAIRS[opened[-1]] == bracket:
                opened.pop()
    return closed, opened
