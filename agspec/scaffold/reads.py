"""Opened files in a message, found by a profile's ``reads``.

Time is linear in the message: a regex is tried only at line starts, at most once a line, and sees
a bounded number of characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from agspec.draft.emission import strip_line_numbers, unescape_json
from agspec.scaffold.profile import Read

BEGIN_WINDOW = 4096
"""Characters that ``begin`` sees: a header of a line or two, so that even a quadratic regex is harmless."""
END_WINDOW = 65536
"""Characters that ``end`` sees: a JSON string of 10,000 escaped characters, which is the longest an agent shows."""
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A text the agent has read, free of what the display added.

    ``complete``: it is the whole file. ``tabs`` is "expanded" where the display lost them, so that
    the file itself may differ.
    """

    path: str | None
    text: str
    complete: bool
    tabs: Literal["kept", "expanded"] = "kept"


def opened_files(reads: Sequence[Read], role: str, text: str) -> list[OpenedFile]:
    """The texts that the first matching one of ``reads`` finds in a message."""
    for read in reads:
        if role in read.where and _may_hold(read, text):
            found = list(_texts(read, text))
            if found:
                return found
    return []


def _may_hold(read: Read, text: str) -> bool:
    needed = not read.needs or any(need in text for need in read.needs)
    return needed and not any(lack in text for lack in read.lacks)


def _texts(read: Read, text: str) -> Iterator[OpenedFile]:
    position = 0
    while (begin := _next_begin(read, text, position)) is not None:
        body = _body(read, text, begin)
        opened = _opened(read, begin, body, text)
        if opened is not None:
            yield opened
        position = max(body.stop, begin.end(), position + 1)


def _next_begin(read: Read, text: str, position: int) -> re.Match[str] | None:
    if not read.literal:
        return read.begin.match(text, 0, BEGIN_WINDOW) if position == 0 else None
    literals = _any_of(read.literal)
    while (hit := literals.search(text, position)) is not None:
        line = max(position, text.rfind("\n", position, hit.start()) + 1)
        begin = read.begin.match(text, line, min(len(text), line + BEGIN_WINDOW))
        if begin is not None:
            return begin
        next_line = text.find("\n", hit.start())
        if next_line < 0:
            return None
        position = next_line + 1
    return None


@lru_cache(maxsize=256)
def _any_of(literals: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, literals)))


@lru_cache(maxsize=256)
def _compile(source: str) -> re.Pattern[str]:
    return re.compile(source, re.MULTILINE)


@dataclass(slots=True)
class _Body:
    lines: list[str]
    stop: int
    ended: bool = False
    first_number: int | None = None
    skipped: bool = False


def _body(read: Read, text: str, begin: re.Match[str]) -> _Body:
    groups = {name: caught or "" for name, caught in begin.groupdict().items()}
    end = None if read.end is None else _compile(read.end_source(groups))
    prefix = None if isinstance(read.line_prefix, str) else read.line_prefix
    body = _Body(lines=[], stop=begin.end())
    while body.stop < len(text):
        here = body.stop
        closed = end.match(text, here, min(len(text), here + END_WINDOW)) if end is not None else None
        if closed is not None:
            body.lines.append(closed.groupdict().get("rest") or "")
            body.stop, body.ended = closed.end(), True
            return body
        newline = text.find("\n", here)
        after = len(text) if newline < 0 else newline + 1
        if read.skip is not None and read.skip.match(text, here, after):
            body.skipped, body.stop = True, after
            continue
        start = here
        if prefix is not None:
            numbered = prefix.match(text, here, after)
            if numbered is None:
                body.ended = end is None
                return body
            start = numbered.end()
            if not body.lines:
                number = _DIGITS.search(numbered[0])
                body.first_number = int(number[0][:12]) if number else None
        body.lines.append(text[start:after])
        body.stop = after
    body.ended = end is None
    return body


def _opened(read: Read, begin: re.Match[str], body: _Body, message: str) -> OpenedFile | None:
    if not body.lines and isinstance(read.line_prefix, re.Pattern):
        return None
    text: str | None = "".join(body.lines)
    if begin[0].endswith("\r\n"):
        text = (text or "").replace("\r\n", "\n")
    if read.decode != "none":
        text = unescape_json(text or "", html_safe=read.decode == "json_html")
    if text is None:
        return None
    clipped = False
    if read.clipped is not None:
        text, cut, _ = text.partition(read.clipped)
        clipped = bool(cut) or message.startswith(read.clipped, body.stop)
    if read.last_newline == "display":
        text = text.removesuffix("\n")
    lines = text.count("\n") + (not text.endswith("\n"))
    if lines < read.min_lines:
        return None
    if read.line_prefix == "auto":
        text = strip_line_numbers(text) or text
    groups = begin.groupdict()
    total = groups.get("total")
    all_lines = not body.skipped if total is None else int(total) == len(body.lines)
    from_the_top = body.ended and body.first_number in (None, 1)
    complete = read.whole and from_the_top and all_lines and not clipped and not groups.get("part")
    return OpenedFile(groups.get("path"), text, complete, read.tabs)
