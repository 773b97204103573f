"""The folder a corpus is made in, beside its place: sorted runs and a manifest, so that a rerun goes on.

``.NAME.building/`` holds ``corpus/`` (which becomes the corpus), ``runs.i32`` (sorted runs of positions, one behind
the other) and ``manifest.json``, which is written when a run is whole: what lies behind it in the files is not.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agspec.corpus import HEADS, ITEM, META, ORDER, TOKENS, CorpusInfo, Stored, mapped
from agspec.draft.frozen import heads_of
from agspec.draft.suffix_array import SEPARATOR, merge, start_merge
from agspec.errors import InputError
from agspec.replay.trace import checksum, write_whole
from agspec.tokens import Tokens

Progress = Callable[[int, int, str], None]
"""(done, total, what is under way)."""

RUNS, MANIFEST = "runs.i32", "manifest.json"
STEP = 1 << 20
"""Positions merged at a time."""


class Manifest(BaseModel):
    """How far a corpus is made.

    ``command``: what was asked for, inputs' checksums included. ``runs``: positions in each run. ``num_seen``:
    documents of the inputs that were dealt with. ``counts``: tokens of each source.
    """

    model_config = ConfigDict(extra="forbid")

    command: dict[str, Any]
    runs: list[int] = Field(default_factory=list)
    num_seen: int = 0
    num_tokens: int = 0
    num_documents: int = 0
    counts: list[int] = Field(default_factory=list)
    sessions: dict[str, None] = Field(default_factory=dict)
    excluded: dict[str, int] = Field(default_factory=dict)


class Work:
    """An open work folder."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @property
    def tokens(self) -> Path:
        """The tokens so far."""
        return self.folder / "corpus" / TOKENS

    def save(self) -> None:
        """Note that what was appended so far is whole."""
        write_whole(self.folder / MANIFEST, self.manifest.model_dump_json().encode())

    def trim(self) -> None:
        """Cut off what an interrupted build appended: back to what the manifest knows."""
        known = self.manifest.num_tokens + self.manifest.num_documents
        for path, size in ((self.tokens, 1 + known), (self.folder / RUNS, sum(self.manifest.runs))):
            with path.open("ab") as file:
                file.truncate(ITEM * size)

    def append(self, tokens: Iterable[Tokens], order: Iterable[Tokens]) -> None:
        """Put documents (each ended by a SEPARATOR) and the sorted run of their positions behind what is there.

        Both come in parts; positions count from the place where the documents begin, less one.
        """
        base = np.int32(self.tokens.stat().st_size // ITEM - 1)
        _write(self.tokens, tokens)
        self.manifest.runs.append(_write(self.folder / RUNS, (part + base for part in order)))

    def finish(self, info: dict[str, Any], vocab_size: int, target: Path, progress: Progress | None) -> CorpusInfo:
        """Merge the runs and put the corpus in its place; ``info``: fields of CorpusInfo that the manifest lacks."""
        corpus = self.folder / "corpus"
        counts = self._merge(corpus / ORDER, vocab_size, progress)
        heads = heads_of(counts)
        (corpus / HEADS).write_bytes(heads.astype("<i4", copy=False).data)
        whole = CorpusInfo(
            num_tokens=self.manifest.num_tokens,
            num_documents=self.manifest.num_documents,
            sessions=tuple(self.manifest.sessions),
            excluded=self.manifest.excluded,
            files={name: stored(corpus / name) for name in (TOKENS, ORDER, HEADS)},
            created=date.today().isoformat(),
            **info,
        )
        (corpus / META).write_bytes(orjson.dumps(whole.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
        corpus.rename(target)
        shutil.rmtree(self.folder)
        return whole

    def _merge(self, path: Path, vocab_size: int, progress: Progress | None) -> npt.NDArray[np.int64]:
        """Write the merged order; how many positions hold each token, int64 [vocabulary]."""
        tokens, runs = mapped(self.tokens), mapped(self.folder / RUNS)
        ends = np.cumsum(self.manifest.runs)
        at = ends - np.asarray(self.manifest.runs)
        heads, tree = np.empty(at.size, np.int64), np.empty(2 * at.size, np.int64)
        start_merge(tokens, runs, at, ends, heads, tree)
        counts = np.zeros(vocab_size, np.int64)
        out = np.empty(STEP, np.int32)
        done = 0
        with path.open("wb") as file:
            while n := int(merge(tokens, runs, at, ends, heads, tree, out)):
                file.write(out[:n].astype("<i4", copy=False).data)
                counts += np.bincount(tokens[out[:n]], minlength=vocab_size)
                done += n
                if progress is not None:
                    progress(done, int(runs.size), "merging")
        return counts


def _write(path: Path, parts: Iterable[Tokens]) -> int:
    """Append to an int32 file; how many were written."""
    n = 0
    with path.open("ab") as file:
        for part in parts:
            file.write(part.astype("<i4", copy=False).data)
            n += int(part.size)
    return n


@contextmanager
def opened(target: Path, command: dict[str, Any]) -> Iterator[Work]:
    """The work folder of ``target`` for ``command``: new, or as the same command left it.

    It stays behind when the body is interrupted; InputError (the inputs cannot be used) removes it. Raises InputError
    when the target is there already, or the folder is another command's or in use.
    """
    if target.exists():
        raise InputError(f"{target}: want a folder to make, found one there")
    folder = target.parent / f".{target.name}.building"
    try:
        (folder / "corpus").mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("ab")
    except OSError as error:
        raise InputError(f"{target}: want a place to write to, got: {error.strerror}") from error
    with lock:
        _lock(lock, folder)
        work = Work(folder, _manifest(folder, command))
        try:
            if not (folder / MANIFEST).exists():
                work.tokens.write_bytes(np.array([SEPARATOR], "<i4").data)
                work.save()
            work.trim()
            yield work
        except InputError:
            shutil.rmtree(folder)
            raise
        except OSError as error:
            raise InputError(f"{folder}: {error.strerror}; the same command goes on from there") from error


def _lock(file: IO[bytes], folder: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise InputError(f"{folder}: want no other build of this corpus at work, found one") from error


def _manifest(folder: Path, command: dict[str, Any]) -> Manifest:
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        return Manifest(command=command)
    except (OSError, ValidationError) as error:
        raise InputError(f"{folder}: want the manifest of a corpus being built, got a broken one: remove it") from error
    other = [key for key in command if manifest.command.get(key) != command[key]]
    if other or manifest.command.keys() != command.keys():
        differs = ", ".join(other) or "kind of work"
        raise InputError(f"{folder}: holds a corpus begun by another command ({differs} differ): finish or remove it")
    return manifest


def stored(path: Path) -> Stored:
    """Size and checksum of a file."""
    return Stored(num_bytes=path.stat().st_size, sha256=checksum(path))
