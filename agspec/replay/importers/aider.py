"""Aider's ``.aider.llm.history``: blocks ``TO LLM <time>`` and ``LLM RESPONSE <time>``, one log a session.

Each line of a message is prefixed by its role, messages are separated by ``-------``. The log is made of
``splitlines()``, so kinds of line ends and a final newline are lost in it; a message without text loses
its role and is left out. With ``--cache-prompts`` aider logs a message as its parts (``type: text``,
``text: ...``, ``cache_control: ...``) and only the first line of each is prefixed. A request without an
answer (interrupted, or the log's end) is no call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from agspec.errors import RecordError
from agspec.replay.importers.records import Importing, decode, load, stem
from agspec.replay.trace import Call, Message, Output

_HEADER = re.compile(r"(TO LLM|LLM RESPONSE) \d{4}-\d\d-\d\dT[\d:.]+")
_LINE = re.compile(r"(SYSTEM|USER|ASSISTANT|TOOL|FUNCTION|DEVELOPER)(?: (.*))?", re.DOTALL)
_SEPARATOR = "-------"
_PARTS = "type: text\ntext: "
_CACHE_CONTROL = re.compile(r"\ncache_control: \{.*\}\Z")


def read(sources: Sequence[Path], importing: Importing) -> Iterator[Call]:
    """Calls of all logs, one session a log."""
    for path in importing.files(sources, ".aider.llm.history"):
        with importing.guard():
            blocks = _blocks(path)
            name = stem(path, ".aider.llm.history").lstrip(".")
            session = importing.new_session(name)
            yield from _calls(path, session, blocks, importing)


def _blocks(path: Path) -> list[tuple[str, int, list[str]]]:
    """(kind, number of its first line, lines) of each block."""
    log = decode(load(path), path)
    first = log.split("\n", 1)[0]
    if first.endswith("\r"):
        log = log.replace("\r\n", "\n")
    if not _HEADER.fullmatch(first.rstrip("\r")):
        raise RecordError(path, 1, f"want a line TO LLM <time>, got {first[:40]!r}")
    blocks: list[tuple[str, int, list[str]]] = []
    for number, line in enumerate(log.removesuffix("\n").split("\n"), 1):
        header = _HEADER.fullmatch(line)
        if header:
            blocks.append((header[1], number + 1, []))
        else:
            blocks[-1][2].append(line)
    return blocks


def _calls(path: Path, session: str, blocks: list[tuple[str, int, list[str]]], importing: Importing) -> Iterator[Call]:
    request: tuple[str, int, list[str]] | None = None
    number = 0
    for block in blocks:
        if block[0] == "TO LLM":
            request = block
            continue
        number += 1
        with importing.guard():
            if request is None:
                raise RecordError(path, number, f"line {block[1] - 1}: want a request before the answer, got none")
            prompt = _messages(path, number, request)
            request = None
            answer = _messages(path, number, block)
            if not prompt:
                raise RecordError(path, number, "want at least one message in the request, got none")
            if answer:
                content = "\n".join(message.content for message in answer)
                yield Call(session=session, messages=prompt, output=Output(content=content), scaffold="aider")


def _messages(path: Path, number: int, block: tuple[str, int, list[str]]) -> tuple[Message, ...]:
    messages: list[tuple[str, list[str]]] = []
    separated = True
    for line_number, line in enumerate(block[2], block[1]):
        prefixed = _LINE.fullmatch(line)
        if line == _SEPARATOR:
            separated = True
        elif prefixed:
            role, text = prefixed[1].lower(), prefixed[2] or ""
            if separated or messages[-1][0] != role:
                messages.append((role, []))
            messages[-1][1].append(text)
            separated = False
        elif messages and not separated and "\n".join(messages[-1][1][:2]).startswith(_PARTS):
            messages[-1][1].append(line)
        elif line:
            want = "want a role (SYSTEM, USER, ASSISTANT) at its start"
            raise RecordError(path, number, f"line {line_number}: {want}, got {line[:40]!r}")
    return tuple(Message(role=role, content=_content(lines)) for role, lines in messages)


def _content(lines: list[str]) -> str:
    content = "\n".join(lines)
    if not content.startswith(_PARTS):
        return content
    return _CACHE_CONTROL.sub("", content.removeprefix(_PARTS))
