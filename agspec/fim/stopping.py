"""Where a completion ends, told from its text and the cursor's place. Whatever way the text is cut, it ends there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from agspec.fim.languages import CLOSERS, PAIRS, Language, open_brackets

_SENTENCE = re.compile(r"[.!?](?=\s)")
_OPENS_BLOCK = re.compile(r"(?:[:{(\[,]|=>|->|\bthen|\bdo|\belse)[ \t]*$")


@dataclass(frozen=True)
class Cursor:
    """The text on both sides of it, and the language. ``single``: whether one line is wanted; None: told from these."""

    prefix: str
    suffix: str
    language: Language
    single: bool | None = None

    @cached_property
    def line(self) -> str:
        """Of the cursor's line, what stands before it."""
        return self.prefix[self.prefix.rfind("\n") + 1 :]

    @cached_property
    def rest(self) -> str:
        """Of the cursor's line, what stands after it."""
        return self.suffix.partition("\n")[0].rstrip("\r")

    @cached_property
    def single_line(self) -> bool:
        """Whether one line is wanted: something other than closing brackets stands after the cursor."""
        return bool(self.rest.strip(" \t;,)]}>\"'`")) if self.single is None else self.single

    @cached_property
    def whole_line(self) -> bool:
        """Whether a completion is a line with its end: put before a line, or asked for where one begins."""
        return not self.line and (bool(self.rest) or self.single is True)

    @cached_property
    def indent(self) -> int:
        """Columns that a block's lines begin at, at least: the cursor's line's own, or one more after an opener."""
        line = self.line.expandtabs()
        own = len(line) - len(line.lstrip())
        return own + 1 if line.strip() and _OPENS_BLOCK.search(self.line) else own

    @cached_property
    def within_line(self) -> bool:
        """Whether a line was begun that opens no block: what completes it ends with it."""
        return bool(self.line.strip()) and not _OPENS_BLOCK.search(self.line)

    @cached_property
    def num_to_close(self) -> int | None:
        """Brackets that the prefix leaves open and the suffix does not close; None where the suffix closes none."""
        closed, _ = open_brackets(self.suffix, self.language)
        if not closed:
            return None
        _, opened = open_brackets(self.prefix, self.language)
        return max(0, len(opened) - len(closed))


def end_of(text: str, cursor: Cursor) -> int | None:
    """The character at which a completion that begins with ``text`` ends; None where it goes on.

    Told by what stands before that character and the line after it, so that more text never changes an end.
    """
    ends = [end for end in (_end_by_brackets(text, cursor), _end_by_lines(text, cursor)) if end is not None]
    return min(ends, default=None)


def _end_by_brackets(text: str, cursor: Cursor) -> int | None:
    """Before a closing bracket that already stands in the suffix, at its level."""
    left = cursor.num_to_close
    if left is None or cursor.language.prose:
        return None
    opened: list[str] = []
    for found in cursor.language.pattern.finditer(text):
        bracket = found[0]
        if bracket in PAIRS:
            opened.append(bracket)
        elif bracket in CLOSERS:
            if opened:
                if PAIRS[opened[-1]] == bracket:
                    opened.pop()
            elif left:
                left -= 1
            else:
                return _before_spaces(text, found.start(), cursor)
    return None


def _before_spaces(text: str, at: int, cursor: Cursor) -> int:
    """A bracket's line is left out with it where it stands on a line of its own, as it does in the suffix."""
    begin = len(text[:at].rstrip(" \t"))
    if begin and text[begin - 1] == "\n" and cursor.suffix[:1] in ("\n", "\r"):
        return begin - 1
    return at


def _end_by_lines(text: str, cursor: Cursor) -> int | None:
    begun = len(text) - len(text.lstrip())
    if begun == len(text):
        return None
    if cursor.language.prose and (found := _SENTENCE.search(text, begun)):
        return found.end()
    at = text.find("\n", begun)
    while at >= 0:
        end = at - (text[at - 1] == "\r")
        if cursor.single_line:
            return at + 1 if cursor.whole_line else end
        if cursor.within_line and not open_brackets(cursor.line + text[:at], cursor.language)[1]:
            return end
        following = text[at + 1 :]
        line, newline, _ = following.partition("\n")
        if newline and not line.strip():
            return end
        if cursor.language.indented and line.strip():
            columns = line.expandtabs()
            if len(columns) - len(columns.lstrip()) < cursor.indent:
                return end
        at = text.find("\n", at + 1)
    return None
