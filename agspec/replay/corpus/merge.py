"""One corpus of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from agspec.corpus import HEADS, META, ORDER, TOKENS, CorpusInfo, mapped, read_info
from agspec.errors import InputError
from agspec.replay.corpus.build import MAX_TOKENS
from agspec.replay.corpus.work import STEP, Progress, opened, stored
from agspec.tokens import Tokens


def merge_corpora(folders: Sequence[Path], target: Path, *, progress: Progress | None = None) -> CorpusInfo:
    """Make the corpus folder ``target`` of all documents of ``folders``, in order; what its corpus.json says.

    The same as one build of all their inputs. Raises InputError when tokenizers or tool wires differ.
    """
    infos = [read_info(folder) for folder in folders]
    wires = {info.tool_wire for info in infos} - {None}
    for folder, info in zip(folders, infos, strict=True):
        if info.tokenizer != infos[0].tokenizer:
            raise InputError(
                f"{folder}: made for tokenizer {info.tokenizer} ({info.tokenizer_name}), {folders[0]} for "
                f"{infos[0].tokenizer} ({infos[0].tokenizer_name})"
            )
    if len(wires) > 1:
        raise InputError(f"want corpora of one tool wire, got {' and '.join(sorted(map(str, wires)))}")
    if sum(info.num_tokens + info.num_documents for info in infos) > MAX_TOKENS:
        raise InputError(f"want at most {MAX_TOKENS:,} tokens in a corpus (positions are int32), got more")
    command = {"corpora": [[str(folder), stored(folder / META).sha256] for folder in folders]}
    sessions = {session: None for info in infos for session in info.sessions}
    with opened(target, command) as work:
        manifest = work.manifest
        for folder, info in list(zip(folders, infos, strict=True))[len(manifest.runs) :]:
            if progress is not None:
                progress(len(manifest.runs), len(folders), f"copying {folder}")
            work.append(_parts(mapped(folder / TOKENS)[1:]), _parts(mapped(folder / ORDER)))
            manifest.num_tokens += info.num_tokens
            manifest.num_documents += info.num_documents
            work.save()
        manifest.sessions = sessions
        for info in infos:
            for name, count in info.excluded.items():
                if name not in sessions:
                    manifest.excluded[name] = manifest.excluded.get(name, 0) + count
        fields = {
            "tokenizer": infos[0].tokenizer,
            "tokenizer_name": infos[0].tokenizer_name,
            "tool_wire": next(iter(wires), None),
            "sources": [source for info in infos for source in info.sources],
        }
        return work.finish(fields, int(mapped(folders[0] / HEADS).size) - 1, target, progress)


def _parts(array: Tokens) -> Iterator[Tokens]:
    for start in range(0, array.size, STEP):
        yield array[start : start + STEP]
