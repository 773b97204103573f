"""OpenAI JSONL: ``{"request": <chat.completions body>, "response": <its response>, "session": optional}`` a line.

Without ``session`` the name is the file's stem, with the body's own session or user id where it has one.
Equal ``session`` ids are one session, also over several files. Scaffold and role are left to the profiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agspec.errors import RecordError
from agspec.replay.importers.records import (
    Importing,
    json_object,
    load,
    messages,
    optional_text,
    output,
    response_message,
    stem,
    tools,
    want,
)
from agspec.replay.trace import Call

_SESSION_KEYS = ("prompt_cache_key", "x-litellm-session-id", "session_id", "user")


def read(sources: Sequence[Path], importing: Importing) -> Iterator[Call]:
    """Calls line by line; blank lines are allowed."""
    for path in importing.files(sources, ".jsonl"):
        with importing.guard():
            file_session = importing.new_session(stem(path, ".jsonl", ".json"))
            lines = [line for line in enumerate(load(path).split(b"\n"), 1) if line[1].strip()]
            if not lines:
                raise RecordError(path, 1, "want a JSON object, got an empty file")
            for number, line in lines:
                with importing.guard():
                    yield _call(json_object(line, path, number), path, number, file_session)


def _call(record: dict[str, Any], path: Path, number: int, file_session: str) -> Call:
    request = want(record.get("request"), dict, path, number, "request")
    response = want(record.get("response"), dict, path, number, "response")
    return Call(
        session=_session(record, request, file_session, path, number),
        messages=messages(request.get("messages"), path, number),
        output=output(response_message(response, path, number), path, number),
        model=optional_text(request.get("model")) or optional_text(response.get("model")),
        tools=tools(request.get("tools"), path, number),
    )


def _session(record: dict[str, Any], request: dict[str, Any], file_session: str, path: Path, number: int) -> str:
    if record.get("session") is not None:
        return str(want(record["session"], str, path, number, "session"))
    named = (optional_text(request.get(key)) for key in _SESSION_KEYS)
    return next((f"{file_session}:{name}" for name in named if name), file_session)
