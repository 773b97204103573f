"""A chat request as one that is answered by a program: the files its messages show are numbered, and copied from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agspec.messages import Message
from agspec.scaffold import Scaffold
from agspec.serve.edits.prompt import numbered, wording


@dataclass(frozen=True)
class Shown:
    """The latest text of a file, and the message that shows it (0: the first)."""

    path: str
    text: str
    message: int


def shown_files(scaffold: Scaffold, messages: Sequence[Message]) -> tuple[Shown, ...]:
    """Each file once, in the order in which they were shown last; files without text or path are left out."""
    latest: dict[str, Shown] = {}
    for number, message in enumerate(messages):
        if message.role == "assistant":
            continue
        for file in scaffold.opened_files(message):
            if file.path and file.text:
                latest.pop(file.path, None)
                latest[file.path] = Shown(file.path, file.text, number)
    return tuple(latest.values())


def asked_for(messages: Sequence[dict[str, Any]], files: Sequence[Shown], *, escaped: bool) -> list[dict[str, Any]]:
    """``messages`` (content: text or None), with numbers before the lines of ``files`` and what to write said last.

    A file that is shown in another form, so with numbers already, stays as it is. ``escaped``: the program writes tool
    calls whose arguments are JSON.
    """
    told = [dict(message) for message in messages]
    for file in files:
        content = told[file.message].get("content")
        if isinstance(content, str):
            told[file.message]["content"] = content.replace(file.text, numbered(file.text), 1)
    note = _note(files, escaped=escaped)
    last = told[-1]
    if last.get("role") == "user":
        last["content"] = f"{last.get('content') or ''}\n\n{note}"
    elif told[0].get("role") == "system":
        told[0]["content"] = f"{told[0].get('content') or ''}\n\n{note}"
    else:
        told.insert(0, {"role": "system", "content": note})
    return told


def _note(files: Sequence[Shown], *, escaped: bool) -> str:
    told = wording("answer")
    note = told["one" if len(files) == 1 else "several"].replace("{path}", files[0].path)
    note = note.replace("{files}", "\n".join(f"file {n} is {file.path}" for n, file in enumerate(files, 1)))
    return f"{note}\n{told['escaped' if escaped else 'plain']}"
