"""A file's change written as an edit: SEARCH/REPLACE blocks, udiff, whole file, str_replace calls.

Blocks show two lines of context, and more where the text they search for would not be unique. They are
checked by applying them one after the other; where that fails the file gets one block.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from agspec.replay.trace import Output, ToolCall

_CONTEXT_LINES = 2
_LANGUAGES = {
    ".c": "c", ".cpp": "cpp", ".css": "css", ".go": "go", ".h": "c", ".html": "html", ".java": "java",
    ".js": "javascript", ".json": "json", ".md": "markdown", ".py": "python", ".rb": "ruby", ".rs": "rust",
    ".sh": "bash", ".toml": "toml", ".ts": "typescript", ".yaml": "yaml", ".yml": "yaml",
}  # fmt: skip


@dataclass(frozen=True)
class FileEdit:
    """One file before and after; None where it does not exist."""

    path: str
    old: str | None
    new: str | None


@dataclass(frozen=True)
class Block:
    """A replacement; ``search`` occurs once in the file when the block's turn comes ("" in an empty file)."""

    search: str
    replace: str


def edit_output(edits: Sequence[FileEdit], edit_format: str) -> Output:
    """Edits of existing and new files as a model would write them."""
    if edit_format == "str-replace":
        return Output(tool_calls=tuple(call for edit in edits for call in _str_replace(edit)))
    write = {"search-replace": _search_replace, "udiff": _udiff, "whole": _whole}[edit_format]
    return Output(content="\n\n".join(write(edit) for edit in edits))


def choose_fence(texts: Sequence[str]) -> str:
    """The shortest run of three or more backticks that no line of the texts begins with."""
    longest = 2
    for line in (line for text in texts for line in text.split("\n")):
        longest = max(longest, len(line) - len(line.lstrip("`")))
    return "`" * (longest + 1)


def blocks(old: str, new: str) -> list[Block]:
    """Replacements that turn old into new when applied in order."""
    old_lines, new_lines = _lines(old), _lines(new)
    changes = _changes(old_lines, new_lines)
    found = _blocks(old_lines, new_lines, changes)
    if changes and apply(old, found) != new:
        first, last = changes[0], changes[-1]
        found = _blocks(old_lines, new_lines, [(first[0], last[1], first[2], last[3])])
    return found


def apply(old: str, found: Sequence[Block]) -> str | None:
    """The text after all replacements; None where a search text does not occur once."""
    text = old
    for block in found:
        if not _occurs_once(block.search, text) and text:
            return None
        text = text.replace(block.search, block.replace, 1)
    return text


def _lines(text: str) -> list[str]:
    return [line for line in text.replace("\n", "\n\0").split("\0") if line]


def _occurs_once(part: str, text: str) -> bool:
    return part != "" and text.find(part) == text.rfind(part) != -1


def _changes(old: list[str], new: list[str]) -> list[tuple[int, int, int, int]]:
    """Changed line ranges (old start, old end, new start, new end), in order."""
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    tail = next((i for i in range(shorter - head) if old[-1 - i] != new[-1 - i]), shorter - head)
    matcher = difflib.SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    return [
        (i1 + head, i2 + head, j1 + head, j2 + head) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"
    ]


def _blocks(old: list[str], new: list[str], changes: list[tuple[int, int, int, int]]) -> list[Block]:
    """One block for each widened range of old lines, with all changes inside it made."""
    found = []
    for start, end in _ranges(old, changes):
        replaced, at = [], start
        for i1, i2, j1, j2 in changes:
            if start <= i1 and i2 <= end:
                replaced += old[at:i1] + new[j1:j2]
                at = i2
        found.append(Block("".join(old[start:end]), "".join(replaced + old[at:end])))
    return found


def _ranges(old: list[str], changes: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    """The changes' old lines, widened to context and uniqueness, joined where they meet."""
    text = "".join(old)
    ranges: list[tuple[int, int]] = []
    for i1, i2, _, _ in changes:
        start, end, widen = i1, i2, _CONTEXT_LINES
        while True:
            start, end, widen = max(0, start - widen), min(len(old), end + widen), 1
            while ranges and start <= ranges[-1][1]:
                start = ranges.pop()[0]
            if (start, end) == (0, len(old)) or _occurs_once("".join(old[start:end]), text):
                break
        ranges.append((start, end))
    return ranges


def _search_replace(edit: FileEdit) -> str:
    old, new = edit.old or "", edit.new or ""
    fence = choose_fence([old, new])
    language = _LANGUAGES.get(PurePosixPath(edit.path).suffix, "")
    found = blocks(old, new) if edit.old is not None else [Block("", new)]
    written = [
        f"{edit.path}\n{fence}{language}\n<<<<<<< SEARCH\n{_closed(block.search)}=======\n"
        f"{_closed(block.replace)}>>>>>>> REPLACE\n{fence}"
        for block in found
    ]
    return "\n\n".join(written)


def _udiff(edit: FileEdit) -> str:
    old, new = edit.old or "", edit.new or ""
    fence = choose_fence([])
    lines = [f"--- {edit.path if edit.old is not None else '/dev/null'}\n", f"+++ {edit.path}\n"]
    for block in blocks(old, new):
        search, replace = _lines(block.search), _lines(block.replace)
        lines.append("@@ ... @@\n")
        at = 0
        for i1, i2, j1, j2 in _changes(search, replace):
            lines += [" " + line for line in search[at:i1]]
            lines += ["-" + _closed(line) for line in search[i1:i2]]
            lines += ["+" + _closed(line) for line in replace[j1:j2]]
            at = i2
        lines += [" " + line for line in search[at:]]
    return f"{fence}diff\n{''.join(map(_closed, lines))}{fence}"


def _whole(edit: FileEdit) -> str:
    new = edit.new or ""
    fence = choose_fence([new])
    return f"{edit.path}\n{fence}\n{_closed(new)}{fence}"


def _closed(text: str) -> str:
    return text if text.endswith("\n") or not text else text + "\n"


def _str_replace(edit: FileEdit) -> list[ToolCall]:
    if not edit.old:
        return [_tool_call(command="create", path=edit.path, file_text=edit.new or "")]
    found = blocks(edit.old, edit.new or "")
    cut = [
        Block(b.search[:-1], b.replace[:-1]) if b.search.endswith("\n") and b.replace.endswith("\n") else b
        for b in found
    ]
    if apply(edit.old, cut) == edit.new:
        found = cut
    return [
        _tool_call(command="str_replace", path=edit.path, old_str=block.search, new_str=block.replace)
        for block in found
    ]


def _tool_call(**arguments: str) -> ToolCall:
    return ToolCall(name="str_replace_editor", arguments=json.dumps(arguments, ensure_ascii=False))
