"""Whether a corpus is what it was built to be."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from agspec.corpus import HEADS, ORDER, TOKENS, CorpusInfo, mapped, read_info
from agspec.draft.frozen import Sorted
from agspec.draft.suffix_array import SEPARATOR, first_unsorted
from agspec.errors import InputError
from agspec.replay.corpus.work import STEP, Progress, stored
from agspec.tokens import Tokens

WINDOWS, WINDOW = 4096, 64
"""Stretches of the order that are looked at unless all is, and their length."""


def verify_corpus(folder: Path, *, full: bool = False, progress: Progress | None = None) -> CorpusInfo:
    """What corpus.json says, when all that was looked at agrees with it; else InputError: what is wrong, and where.

    Looks at sizes, checksums and stretches of the order; ``full``: at every token and position.
    """
    info = read_info(folder)
    arrays = Sorted(*(mapped(folder / name) for name in (TOKENS, ORDER, HEADS)))
    if arrays.order.size != info.num_tokens - info.num_documents:
        raise InputError(
            f"{folder / ORDER}: want {info.num_tokens - info.num_documents:,} positions, got {arrays.order.size:,}"
        )
    _heads(folder / HEADS, arrays)
    if full:
        _tokens(folder / TOKENS, arrays, info)
    size = arrays.order.size
    if full or size <= WINDOWS * WINDOW:
        starts, length = np.arange(0, max(1, size), STEP), STEP
    else:
        starts, length = np.linspace(0, size - WINDOW, WINDOWS).astype(np.int64), WINDOW
    for number, start in enumerate(starts.tolist()):
        if progress is not None:
            progress(number, len(starts), "order")
        _order(folder / ORDER, arrays, max(0, start - 1), min(size, start + length))
    if full:
        _permutation(folder / ORDER, arrays)
    for number, (name, known) in enumerate(info.files.items()):
        if progress is not None:
            progress(number, len(info.files), "checksums")
        got = stored(folder / name).sha256
        if got != known.sha256:
            raise InputError(f"{folder / name}: want sha256 {known.sha256[:16]}..., got {got[:16]}...")
    return info


def _heads(path: Path, arrays: Sorted) -> None:
    heads = arrays.heads
    if not heads.size or heads[0] != 0 or heads[-1] != arrays.order.size:
        raise InputError(f"{path}: want places from 0 to {arrays.order.size:,}, got others")
    fall = np.flatnonzero(np.diff(heads) < 0)
    if fall.size:
        raise InputError(f"{path}, entry {int(fall[0]) + 1:,}: want a place not before the last one, got one")


def _tokens(path: Path, arrays: Sorted, info: CorpusInfo) -> None:
    tokens = arrays.tokens
    num_separators = 0
    vocab_size = arrays.heads.size - 1
    for start in range(0, tokens.size, STEP):
        part = tokens[start : start + STEP]
        num_separators += int(np.count_nonzero(part == SEPARATOR))
        wrong = np.flatnonzero((part < SEPARATOR) | (part >= vocab_size))
        if wrong.size:
            at = int(wrong[0])
            raise InputError(f"{path}, entry {start + at:,}: want a token below {vocab_size:,}, got {part[at]}")
    if tokens[0] != SEPARATOR or tokens[-1] != SEPARATOR or num_separators != info.num_documents + 1:
        raise InputError(f"{path}: want {info.num_documents:,} documents between separators, got others")


def _order(path: Path, arrays: Sorted, low: int, high: int) -> None:
    """Entries ``low``:``high`` are positions that a token follows, under their token's head, and sorted."""
    tokens, order, heads = arrays
    places: Tokens = np.ascontiguousarray(order[low:high])
    wrong = np.flatnonzero((places < 1) | (places >= tokens.size - 1))
    if not wrong.size:
        wrong = np.flatnonzero((tokens[places] < 0) | (tokens[places + 1] < 0) | (tokens[places] >= heads.size - 1))
    if wrong.size:
        at = int(wrong[0])
        raise InputError(f"{path}, entry {low + at:,}: want a position that a token follows, got {places[at]}")
    entries = np.arange(low, high)
    wrong = np.flatnonzero((entries < heads[tokens[places]]) | (entries >= heads[tokens[places] + 1]))
    if wrong.size:
        at = int(wrong[0])
        token = tokens[places[at]]
        raise InputError(f"{path}, entry {low + at:,}: want it within the places of token {token}, found it outside")
    at = int(first_unsorted(tokens, places))
    if at < places.size:
        raise InputError(f"{path}, entry {low + at:,}: want a context that sorts after the one before, got another")


def _permutation(path: Path, arrays: Sorted) -> None:
    seen = np.zeros(arrays.tokens.size, np.bool_)
    for start in range(0, arrays.order.size, STEP):
        seen[arrays.order[start : start + STEP]] = True
    twice = arrays.order.size - int(np.count_nonzero(seen))
    if twice:
        raise InputError(f"{path}: want each position once, got {twice:,} of them again")
