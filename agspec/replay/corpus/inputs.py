"""What goes into a corpus: documents streamed out of traces, other recordings and plain text."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from agspec.errors import InputError, RecordError
from agspec.replay.importers import KINDS as IMPORTED
from agspec.replay.importers import module_of
from agspec.replay.importers.records import Importing, as_text
from agspec.replay.render import ToolWire, render_output
from agspec.replay.trace import FORMAT, Output, checksum

TRACE, TEXT = "trace", "text"
KINDS = (TRACE, TEXT, *IMPORTED)
SUFFIXES = (".jsonl", ".jsonl.gz")
CHUNK = 1 << 20
"""Bytes of the longest text document."""


@dataclass(frozen=True)
class Document:
    """One text: of which source (index) it is, of which session if any, and how far the source is read (bytes).

    ``ended``: a whole output of a model, which the end-of-turn token closes.
    """

    source: int
    session: str | None
    text: str
    ended: bool
    num_read: int


@dataclass(frozen=True)
class Input:
    """A source: its name as given, where its files are, their size in bytes and the sha256 of their content."""

    name: str
    path: Path
    num_bytes: int
    sha256: str


def inputs(kind: str, paths: Sequence[Path]) -> list[Input]:
    """The sources that ``paths`` stand for, checked and hashed; each trace below a directory is one.

    Raises InputError.
    """
    found: list[Input] = []
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: want a file or folder, found none there")
        files = _below(path, hidden=kind == "git")
        if kind != TRACE or path.is_file():
            found.append(_input(path, files))
            continue
        traces = [file for file in files if file.name.endswith(SUFFIXES) and _is_trace(file)]
        if not traces:
            raise InputError(f"{path}: want traces (*{' or *'.join(SUFFIXES)}) below it, found none: agspec import")
        found += [_input(file, [file]) for file in traces]
    if sum(source.num_bytes for source in found) == 0:
        raise InputError(f"{', '.join(map(str, paths))}: want text, got empty files")
    return found


def documents(kind: str, sources: Sequence[Input], wire: ToolWire) -> Iterator[Document]:
    """The documents of ``sources`` in order; an output or text that is empty is left out."""
    importing = Importing(skip_bad=False)
    before = 0
    for number, source in enumerate(sources):
        if kind == TRACE:
            found = _outputs(source.path)
        elif kind == TEXT:
            found = _texts(source.path)
        else:
            found = _imported(kind, source.path, importing)
        for session, content, num_read in found:
            text = content if isinstance(content, str) else render_output(content, wire)
            if text:
                yield Document(number, session, text, not isinstance(content, str), before + num_read)
        before += source.num_bytes


Found = Iterator[tuple[str | None, Output | str, int]]
"""(session, what was written, bytes of the source read so far)."""


def _outputs(path: Path) -> Found:
    """The outputs of a trace file, one line of it in memory at a time."""
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            lines = gzip.GzipFile(fileobj=raw) if zipped else raw
            number, calls = 0, 0
            for number, line in enumerate(lines, 1):
                record = _record(path, number, line)
                if number == 1:
                    if record.get("agspec_trace") != FORMAT:
                        raise _no_trace(path, line)
                elif record:
                    calls += 1
                    yield _session(path, number, record), _output(path, number, record), raw.tell()
            if not number:
                raise _no_trace(path, b"")
            if not calls:
                raise InputError(f"{path}: want at least one call, got none")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: want a whole gzip file, got a broken one ({error})") from error
    except OSError as error:
        raise InputError(f"{path}: want a readable file, got: {error.strerror or error}") from error


def _no_trace(path: Path, line: bytes) -> RecordError:
    got = line[:60].decode("utf-8", "replace").strip()
    return RecordError(
        path,
        1,
        f"want an agspec trace of format {FORMAT}, got {got!r}; for other files give --kind ({', '.join(KINDS)})",
    )


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    if not line.strip() and number > 1:
        return {}
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise (
            _no_trace(path, line)
            if number == 1
            else RecordError(path, number, f"want a JSON object, got {line[:40]!r}")
        ) from error
    if not isinstance(record, dict):
        raise RecordError(path, number, f"want a JSON object, got {type(record).__name__}")
    return record


def _session(path: Path, number: int, record: dict[str, Any]) -> str:
    session = record.get("session")
    if not isinstance(session, str):
        raise RecordError(path, number, f"session: want text, got {str(session)[:40]!r}")
    return session


def _output(path: Path, number: int, record: dict[str, Any]) -> Output:
    try:
        return Output.model_validate(record.get("output"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in ("output", *first["loc"]))
        raise RecordError(path, number, f"{where}: {first['msg']}") from error


def _imported(kind: str, path: Path, importing: Importing) -> Found:
    read: Callable[..., Iterator[Any]] = import_module(module_of(kind)).read
    for call in read([path], importing):
        yield call.session, call.output, 0


def _texts(path: Path) -> Found:
    """The files below ``path``, in pieces of CHUNK bytes; of one in a directory only what is text."""
    num_read = 0
    for file in _below(path):
        try:
            for text in _pieces(file):
                yield None, text, num_read
            num_read += file.stat().st_size
        except OSError as error:
            raise InputError(f"{file}: want a readable file, got: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            if not path.is_dir():
                raise InputError(f"{file}: want UTF-8 text, got byte {error.object[error.start]:#04x}") from error


def _pieces(file: Path) -> Iterator[str]:
    """The text of a file; UnicodeDecodeError at a byte that is none, a zero byte included."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with file.open("rb") as raw:
        while data := raw.read(CHUNK):
            if b"\0" in data:
                raise UnicodeDecodeError("utf-8", data, at := data.index(b"\0"), at + 1, "zero byte")
            yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def _below(path: Path, *, hidden: bool = False) -> list[Path]:
    """``path``, or the files below it, sorted; without hidden ones and what is in hidden folders, if not asked for."""
    if not path.is_dir():
        return [path]
    below = (file for file in path.rglob("*") if file.is_file())
    return sorted(
        file for file in below if hidden or not any(part.startswith(".") for part in file.relative_to(path).parts)
    )


def _is_trace(path: Path) -> bool:
    with path.open("rb") as raw:
        start = raw.read(2)
        raw.seek(0)
        try:
            return (gzip.GzipFile(fileobj=raw) if start == b"\x1f\x8b" else raw).read(16) == b'{"agspec_trace":'
        except (OSError, EOFError, zlib.error):
            return True


def _input(path: Path, files: Sequence[Path]) -> Input:
    """A directory's checksum covers the names below it and what is in them."""
    digests: list[str] = []
    num_bytes = 0
    for file in files:
        try:
            digests.append(checksum(file))
            num_bytes += file.stat().st_size
        except OSError as error:
            raise InputError(f"{file}: want a readable file, got: {error.strerror or error}") from error
    if not path.is_dir():
        return Input(as_text(path), path, num_bytes, digests[0])
    names = (f"{as_text(file.relative_to(path))}\0{own}\n" for file, own in zip(files, digests, strict=True))
    return Input(as_text(path), path, num_bytes, hashlib.sha256("".join(names).encode()).hexdigest())
