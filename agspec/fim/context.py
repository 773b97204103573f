"""Other files beside the one at hand: what its symbols are, what they define, and chunks that are like its lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agspec.fim.languages import language_of
from agspec.fim.outline import outline
from agspec.fim.prompt import OtherFile

LINES = 16
"""Of a chunk; the next begins half as far on."""
QUERY = 12
"""Lines before the cursor that chunks are looked up by."""
MOST_CHUNKS = 2000
"""Of all files together that are looked through."""
_WORD = re.compile(r"[^\W\d_]{2,}|\d+")


@dataclass(frozen=True)
class Symbol:
    """What a client's language server knows: ``text``, a signature or a definition, in the file ``path``."""

    path: str
    text: str


def context(
    prefix: str,
    files: Sequence[OtherFile],
    budget: int,
    count: Callable[[str], int],
    *,
    symbols: Sequence[Symbol] = (),
) -> tuple[OtherFile, ...]:
    """What of ``files`` is shown, at most ``budget`` tokens (``count``), the most telling last, next to the prompt.

    ``symbols`` go before all, as they come; then signatures and imports of files that the last lines name things of;
    then chunks that are most like these lines, by BM25.
    """
    kept: list[OtherFile] = []
    left = budget
    for candidate in _candidates(prefix, files, symbols):
        size = count(f"{candidate.path}\n{candidate.text}\n")
        if size <= left:
            kept.append(candidate)
            left -= size
        if left < budget // 20:
            break
    return tuple(reversed(kept))


def _candidates(prefix: str, files: Sequence[OtherFile], symbols: Sequence[Symbol]) -> Iterator[OtherFile]:
    for symbol in symbols:
        yield OtherFile(symbol.path, symbol.text)
    query = "\n".join(prefix.splitlines()[-QUERY:])
    asked = set(words(query))
    for file in files:
        lines = outline(file.text, language_of(path=file.path))
        told = [line for line in lines if asked & set(words(line))]
        if told:
            yield OtherFile(file.path, "\n".join(told))
    yield from similar(query, files)


def similar(query: str, files: Sequence[OtherFile], *, number: int = 4) -> list[OtherFile]:
    """The chunks of ``files`` that are most like ``query``, the best first."""
    chunks = [chunk for file in files for chunk in _chunks(file)][:MOST_CHUNKS]
    asked = list(words(query))
    if not chunks or not asked:
        return []
    import bm25s

    index = bm25s.BM25()
    index.index([list(words(chunk.text)) for chunk in chunks], show_progress=False)
    found, scores = index.retrieve([asked], k=min(number, len(chunks)), show_progress=False)
    return [chunks[int(i)] for i, score in zip(found[0], scores[0], strict=True) if score > 0]


def words(text: str) -> Iterator[str]:
    """The parts of names: ``readFile`` and ``read_file`` are both read, file."""
    for word in _WORD.findall(re.sub(r"([a-z])([A-Z])", r"\1 \2", text)):
        yield word.lower()


def _chunks(file: OtherFile) -> Iterator[OtherFile]:
    lines = file.text.splitlines()
    for first in range(0, max(1, len(lines) - LINES // 2), LINES // 2):
        text = "\n".join(lines[first : first + LINES])
        if text.strip():
            yield OtherFile(file.path, text)
