"""Building a corpus: documents in, sorted runs of bounded size, one merged order."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from agspec.corpus import CorpusInfo, Source
from agspec.draft.frozen import separated, sorted_order
from agspec.errors import InputError
from agspec.replay.corpus.inputs import Document, Input, documents, inputs
from agspec.replay.corpus.work import Manifest, Progress, Work, opened
from agspec.replay.render import ToolWire
from agspec.tokens import Tokenizer, Tokens

SHARD = 4_000_000
"""Tokens sorted at a time: what bounds the memory."""
BATCH = 1 << 20
"""Characters tokenised at a time."""
MAX_TOKENS = 2**31 - 2**24
"""Most tokens of a corpus: positions are int32."""


def task_of(session: str) -> str:
    """The session's name without the number that an importer gives to a repeated one.

    >>> task_of("django__django-11099#2")
    'django__django-11099'
    """
    return re.sub(r"#\d+$", "", session)


def build_corpus(
    paths: Sequence[Path],
    target: Path,
    *,
    tokenizer: Tokenizer,
    tool_wire: ToolWire = "json",
    kind: str = "trace",
    exclude: Collection[str] = (),
    shard: int = SHARD,
    progress: Progress | None = None,
) -> CorpusInfo:
    """Make the corpus folder ``target`` of what ``paths`` hold; what its corpus.json says.

    ``kind``: one of ``inputs.KINDS``. ``exclude``: sessions whose outputs stay out (``x`` stands for ``x#2`` too).
    An interrupted build goes on when it is asked for again. Raises InputError.
    """
    sources = inputs(kind, paths)
    command = {
        "tokenizer": tokenizer.fingerprint,
        "tool_wire": tool_wire,
        "kind": kind,
        "excluded sessions": sorted(exclude),
        "inputs": [[source.name, source.sha256] for source in sources],
        "shard": shard,
    }
    with opened(target, command) as work:
        _fill(work, sources, kind, tool_wire, tokenizer, shard, progress)
        if not work.manifest.num_tokens:
            raise InputError(f"{target}: want at least one token to index, got none")
        info = {
            "tokenizer": tokenizer.fingerprint,
            "tokenizer_name": tokenizer.name,
            "tool_wire": None if kind == "text" else tool_wire,
            "sources": [
                Source(name=source.name, sha256=source.sha256, num_tokens=n)
                for source, n in zip(sources, work.manifest.counts, strict=True)
            ],
        }
        return work.finish(info, tokenizer.vocab_size, target, progress)


def _fill(
    work: Work,
    sources: Sequence[Input],
    kind: str,
    wire: ToolWire,
    tokenizer: Tokenizer,
    shard: int,
    progress: Progress | None,
) -> None:
    """Append the runs that are still missing."""
    manifest = work.manifest
    manifest.counts = manifest.counts or [0] * len(sources)
    manifest.excluded = manifest.excluded or dict.fromkeys(work.manifest.command["excluded sessions"], 0)
    total = max(1, sum(source.num_bytes for source in sources) >> 20)
    held: list[Tokens] = []
    size = 0
    for batch in _batches(_left(documents(kind, sources, wire), manifest.num_seen)):
        kept = [document for document in batch if not _leave_out(manifest, document)]
        found = tokenizer.encode_all([document.text for document in kept])
        for document, tokens in zip(kept, found, strict=True):
            whole = np.append(tokens, np.int32(tokenizer.end_id)) if document.ended else tokens
            if whole.size:
                _note(manifest, document, int(whole.size))
                held.append(whole)
                size += int(whole.size)
        manifest.num_seen += len(batch)
        if manifest.num_tokens + manifest.num_documents > MAX_TOKENS:
            raise InputError(f"want at most {MAX_TOKENS:,} tokens in a corpus (positions are int32), got more")
        if progress is not None:
            progress(batch[-1].num_read >> 20, total, f"{manifest.num_tokens:,} tokens, MiB")
        if size >= shard:
            _append(work, held)
            held, size = [], 0
    if held:
        _append(work, held)


def _append(work: Work, held: list[Tokens]) -> None:
    tokens = separated(held)
    work.append([tokens[1:]], [sorted_order(tokens)])
    work.save()


def _leave_out(manifest: Manifest, document: Document) -> bool:
    if document.session is None:
        return False
    for name in (document.session, task_of(document.session)):
        if name in manifest.excluded:
            manifest.excluded[name] += 1
            return True
    return False


def _note(manifest: Manifest, document: Document, num_tokens: int) -> None:
    manifest.num_tokens += num_tokens
    manifest.num_documents += 1
    manifest.counts[document.source] += num_tokens
    if document.session is not None:
        manifest.sessions[document.session] = None


def _left(found: Iterator[Document], seen: int) -> Iterator[Document]:
    """The documents after the first ``seen``."""
    for number, document in enumerate(found):
        if number >= seen:
            yield document


def _batches(found: Iterator[Document]) -> Iterator[list[Document]]:
    """Documents in lists of about BATCH characters."""
    batch: list[Document] = []
    size = 0
    for document in found:
        batch.append(document)
        size += len(document.text)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
