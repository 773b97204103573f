"""What the tenants' live global stores hold, kept on disk from one run of the engine to the next. Opt-in.

A folder has a file a tenant: a header line (JSON: format, version, tokenizer, tenant), then a record for each output
that was shared: sizes of tail and output and a CRC-32 (three little-endian uint32), then both as int32. A record is
appended when its request has ended, so that nothing hangs on how the engine ends. What a file holds past its last
sound record is cut off; a file of another tokenizer is left as it is, and its tenant starts empty.
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
import zlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson

from agspec.appending import append_whole
from agspec.errors import InputError
from agspec.messages import digest
from agspec.replay.trace import write_whole
from agspec.tokens import Tokens

log = logging.getLogger("agspec")

FORMAT, VERSION = "agspec-state", 1
SUFFIX = ".tokens"
HEAD = struct.Struct("<III")
LONGEST = 1 << 22
"""Tokens of one record; more is a broken one."""

Document = tuple[Tokens, Tokens]
"""(tail, output): see ``draft.request.Ended``."""


class State:
    """The folder of one engine.

    ``most_tokens``: of a tenant, the newest are loaded and kept. ``writes``: this is the rank that appends; it locks
    the folder. Raises InputError for a folder that cannot be used or is in use.
    """

    def __init__(self, folder: Path, *, tokenizer: str, most_tokens: int, writes: bool) -> None:
        self._folder = folder
        self._tokenizer = tokenizer
        self._most = most_tokens
        self._writes = writes
        self._aside: set[Path] = set()
        self.failed: str | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if writes:
                self._lock = (folder / "lock").open("w")
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"{folder}: want a state folder of one engine, got one in use") from error
        except OSError as error:
            raise InputError(f"{folder}: want a state folder, got: {error.strerror}") from error

    def load(self, tenants: int) -> Iterator[tuple[str, list[Document]]]:
        """(tenant, its documents, oldest first) of the ``tenants`` written to last, the latest last."""
        paths = sorted(self._folder.glob(f"*{SUFFIX}"), key=lambda path: (path.stat().st_mtime_ns, path.name))
        for path in paths[-tenants:]:
            try:
                yield self._read(path)
            except InputError as error:
                self._aside.add(path)
                log.error("agspec: %s; its tenant starts empty and nothing is added to it", error)

    def add(self, tenant: str, tail: Tokens, output: Tokens) -> None:
        """Keep a document; where that fails, as on a full disk, keeping ends and drafting goes on."""
        path = self._path(tenant)
        if not self._writes or self.failed is not None or path in self._aside or not output.size:
            return
        try:
            append_whole(path, lambda new: (self._header(tenant) if new else b"") + _record(tail, output))
        except InputError as error:
            self.failed = str(error)
            log.error("agspec: state is no longer kept: %s", error)

    def _path(self, tenant: str) -> Path:
        return self._folder / f"{digest(tenant).hex()}{SUFFIX}"

    def _header(self, tenant: str) -> bytes:
        told = {"format": FORMAT, "version": VERSION, "tokenizer": self._tokenizer, "tenant": tenant}
        return orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE)

    def _read(self, path: Path) -> tuple[str, list[Document]]:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path}: want a state file, got: {error.strerror}") from error
        line, _, _ = data.partition(b"\n")
        try:
            told = orjson.loads(line)
            tenant = str(told["tenant"])
            found = (told["format"], told["version"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}: want a state file, got one whose first line is not a header") from error
        if found != (FORMAT, VERSION):
            raise InputError(f"{path}: want {FORMAT} version {VERSION}, got {found[0]} version {found[1]}")
        if told["tokenizer"] != self._tokenizer:
            raise InputError(f"{path}: want tokens of this model's tokenizer, got another's")
        documents: deque[Document] = deque()
        size, sound = 0, len(line) + 1
        for end, document in _records(data, sound):
            sound = end
            documents.append(document)
            size += int(document[1].size)
            while size > self._most:
                size -= int(documents.popleft()[1].size)
        if self._writes:
            self._mend(path, data, sound, list(documents), size)
        return tenant, list(documents)

    def _mend(self, path: Path, data: bytes, end: int, documents: list[Document], size: int) -> None:
        """Cut off what follows the sound records, which ``end`` there; drop the oldest when they are half of all."""
        if end < len(data):
            log.error("agspec: %s: its last %d bytes are broken and cut off", path, len(data) - end)
            os.truncate(path, end)
        if end > 4 * (2 * self._most + size):
            head = data[: data.index(b"\n") + 1]
            write_whole(path, head + b"".join(_record(*document) for document in documents), mode=0o600)


def _record(tail: Tokens, output: Tokens) -> bytes:
    content = tail.astype("<i4").tobytes() + output.astype("<i4").tobytes()
    return HEAD.pack(tail.size, output.size, zlib.crc32(content)) + content


def _records(data: bytes, start: int) -> Iterator[tuple[int, Document]]:
    """(where it ends, document) of each sound record, up to the first that is not."""
    while start + HEAD.size <= len(data):
        tail, output, checksum = HEAD.unpack_from(data, start)
        start += HEAD.size
        content = data[start : start + 4 * (tail + output)]
        if tail + output > LONGEST or len(content) < 4 * (tail + output) or zlib.crc32(content) != checksum:
            return
        start += len(content)
        tokens = np.frombuffer(content, "<i4").astype(np.int32)
        yield start, (tokens[:tail], tokens[tail:])
