"""The trace record: recorded agent sessions as calls, one JSON object a line, gzip allowed.

Line 1 is the header ``{"agspec_trace": 1, "kind": "mini-swe-agent", "sources": [...]}``. Each further
line is one call, in the order in which the calls were made::

    {"session": "django__django-11099", "role": "coder", "model": "deepseek-chat", "scaffold": "mini-swe-agent",
     "keep": 4, "messages": [...], "output": {"content": "...", "tool_calls": [{"name": "bash", "arguments": "{...}"}]}}

``messages`` are those after the first ``keep`` messages of the session's previous call, so that an
append-only history is stored once. One file is one tenant: its sessions may share what they wrote.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import zlib
from errno import EACCES, EISDIR, ENOTDIR
from pathlib import Path
from typing import Any

import orjson
from pydantic import Field, ValidationError

from agspec.errors import InputError, RecordError
from agspec.messages import Message, Record, Role, ToolCall

FORMAT = 1

__all__ = [
    "Call", "Message", "Output", "Role", "ToolCall", "Trace", "TraceLines", "check_place", "checksum", "header_line",
    "open_bytes", "read_trace", "write_trace", "write_whole",
]  # fmt: skip


class Output(Record):
    """What the model wrote: reasoning (if recorded), text, tool calls, in this order."""

    content: str = ""
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()


class Call(Record):
    """One request and its answer. ``role`` and ``scaffold`` are None where the scaffold profiles decide."""

    session: str
    messages: tuple[Message, ...]
    output: Output
    role: Role | None = None
    model: str | None = None
    scaffold: str | None = None
    tools: tuple[dict[str, Any], ...] = ()


class Trace(Record):
    """Calls of one tenant in the order in which they were made."""

    name: str
    kind: str
    calls: tuple[Call, ...]
    sources: tuple[str, ...] = Field(default=())

    @property
    def sessions(self) -> dict[str, list[Call]]:
        """Calls by session, sessions in order of first appearance."""
        by_session: dict[str, list[Call]] = {}
        for call in self.calls:
            by_session.setdefault(call.session, []).append(call)
        return by_session


def open_bytes(path: Path) -> bytes:
    """Content of a file, unzipped when it starts with the gzip magic; InputError when unreadable."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: want a whole gzip file, got a broken one ({error})") from error
    except OSError as error:
        raise InputError(f"{path}: want a readable file, got: {error.strerror or error}") from error


def checksum(path: Path) -> str:
    """sha256 of a file as it lies there, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_trace(path: str | Path) -> Trace:
    """Read a trace file; raises InputError or RecordError (file, line, reason) on the first bad line."""
    path = Path(path)
    lines = open_bytes(path).splitlines()
    header = _json(path, 1, lines[0] if lines else b"")
    if header.get("agspec_trace") != FORMAT:
        raise RecordError(
            path, 1, f"want an agspec trace of format {FORMAT}, got {str(header)[:60]!r}; make one with: agspec import"
        )
    sources = header.get("sources", [])
    if not isinstance(sources, list) or not all(isinstance(source, str) for source in sources):
        raise RecordError(path, 1, f"sources: want a list of names, got {str(sources)[:60]!r}")
    calls: list[Call] = []
    last: dict[str, tuple[Message, ...]] = {}
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        record = _json(path, number, line)
        keep = record.pop("keep", 0)
        try:
            call = Call.model_validate(record)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise RecordError(path, number, f"{where}: {first['msg']}") from error
        before = last.get(call.session, ())
        if not isinstance(keep, int) or not 0 <= keep <= len(before):
            raise RecordError(path, number, f"keep: want 0 to {len(before)} messages of the call before, got {keep!r}")
        if keep:
            call = call.model_copy(update={"messages": before[:keep] + call.messages})
        last[call.session] = call.messages
        calls.append(call)
    if not calls:
        raise InputError(f"{path}: want at least one call, got none")
    name = path.name.removesuffix(".gz").removesuffix(".jsonl")
    return Trace(
        name=name, kind=str(header.get("kind", "unknown")), calls=tuple(calls), sources=tuple(header.get("sources", ()))
    )


def write_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace (gzipped when the name ends in .gz), whole or not at all; same trace, same bytes."""
    path = Path(path)
    lines = TraceLines()
    data = header_line(trace.kind, trace.sources) + b"".join(lines.line(call) for call in trace.calls)
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    write_whole(path, data)


def write_whole(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file beside its place and move it there: never half a file."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except OSError as error:
        raise InputError(f"{path}: want a place to write to, got: {error.strerror}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def check_place(path: Path) -> None:
    """Refuse before any work is done what ``write_whole`` would refuse after it."""
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    wrong = EISDIR if path.is_dir() else None if folder.is_dir() else ENOTDIR
    if wrong is None and not os.access(folder, os.W_OK):
        wrong = EACCES
    if wrong is not None:
        raise InputError(f"{path}: want a place to write to, got: {os.strerror(wrong)}")


class TraceLines:
    """Calls as a trace file's lines; each holds what is new after the session's previous call."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Message, ...]] = {}

    def line(self, call: Call) -> bytes:
        """The line of a call, its newline too."""
        before = self._last.get(call.session, ())
        keep = 0
        while keep < min(len(before), len(call.messages)) and before[keep] == call.messages[keep]:
            keep += 1
        self._last[call.session] = call.messages
        record = call.model_dump(exclude_defaults=True, exclude={"messages"})
        record["messages"] = [m.model_dump(exclude_defaults=True) for m in call.messages[keep:]]
        record.setdefault("output", {})
        return orjson.dumps({**record, "keep": keep}) + b"\n"

    def forget(self, session: str) -> None:
        """A later call of the session is written whole."""
        self._last.pop(session, None)


def header_line(kind: str, sources: tuple[str, ...] = ()) -> bytes:
    """A trace file's first line."""
    return orjson.dumps({"agspec_trace": FORMAT, "kind": kind, "sources": sources}) + b"\n"


def _json(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise RecordError(path, number, f"want a JSON object, got {line[:40]!r}") from error
    if not isinstance(record, dict):
        raise RecordError(path, number, f"want a JSON object, got {type(record).__name__}")
    return record
