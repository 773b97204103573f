"""A fill-in-the-middle prompt, piece by piece: markers, and the user's texts between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agspec.errors import InputError
from agspec.fim.families import Family, Order, names_of
from agspec.fim.vocabulary import FimVocabulary

_FIELD = re.compile(r"\{(P|S|own|repo|path|text|comment)\}")


@dataclass(frozen=True)
class OtherFile:
    """A file, or part of one, that is shown beside the one at hand."""

    path: str
    text: str


@dataclass(frozen=True)
class Piece:
    """``marker``: one of the family's; else text. ``ids``: None without a tokenizer."""

    text: str
    marker: bool
    ids: tuple[int, ...] | None = None


@dataclass(frozen=True)
class FimPrompt:
    """``pieces`` in order, BOS apart; ``stops``: texts that end a completion, ``stop_ids``: those that are tokens."""

    family: str
    order: Order
    pieces: tuple[Piece, ...]
    stops: tuple[str, ...]
    bos: tuple[int, ...] = ()
    stop_ids: tuple[int, ...] = ()

    @property
    def ids(self) -> list[int]:
        """All ids, int; InputError without a tokenizer."""
        found = list(self.bos)
        for piece in self.pieces:
            if piece.ids is None:
                raise InputError("want a tokenizer to tell a prompt's ids, got none")
            found += piece.ids
        return found


def build(
    family: Family,
    *,
    prefix: str,
    suffix: str,
    path: str | None = None,
    repository: str = "repository",
    others: Sequence[OtherFile] = (),
    comment: str = "#",
    order: Order | None = None,
    vocabulary: FimVocabulary | None = None,
) -> FimPrompt:
    """The prompt for the text between ``prefix`` and ``suffix``, which may both be empty.

    ``others`` stand first, in the family's own form; where it has none, as comments that begin with ``comment`` at the
    prefix's begin. ``order``: the family's first by default; InputError for one it was not trained on.
    """
    order = family.orders[0] if order is None else order
    layout = family.layout(order)
    own = ""
    before: list[tuple[str, Mapping[str, str]]] = []
    if family.files is None:
        prefix = _headers(family, path, others, comment) + prefix
    elif others:
        here = path or "untitled"
        before.append((family.files.head, {"repo": repository}))
        before += [(family.files.file, {"path": f.path, "text": f.text, "comment": comment}) for f in others]
        before.append((family.files.own, {"path": here}))
        own = family.files.inside.replace("{path}", here)
    elif path and not family.files.head:
        before.append((family.files.own, {"path": path}))
        own = family.files.inside.replace("{path}", path)
    before.append((layout, {"P": prefix, "S": suffix, "own": own}))
    pieces = [piece for template, fields in before for piece in _pieces(template, fields, family, vocabulary)]
    return _prompt(family, order, pieces, vocabulary)


def plain(prefix: str, *, vocabulary: FimVocabulary | None = None, family: Family) -> FimPrompt:
    """Continuation of ``prefix`` without markers: nothing stands after the cursor, or the model knows no middle."""
    return _prompt(family, family.orders[0], [Piece(prefix, marker=False)] if prefix else [], vocabulary)


def _prompt(family: Family, order: Order, pieces: Sequence[Piece], vocabulary: FimVocabulary | None) -> FimPrompt:
    joined = tuple(_joined(pieces, vocabulary))
    if vocabulary is None:
        return FimPrompt(family.name, order, joined, tuple(names_of(stop)[0] for stop in family.stops))
    stops = tuple(map(vocabulary.named, family.stops))
    return FimPrompt(family.name, order, joined, stops, tuple(vocabulary.bos), tuple(vocabulary.stop_ids(stops)))


def _headers(family: Family, path: str | None, others: Sequence[OtherFile], comment: str) -> str:
    """Other files as text before the prefix."""
    if family.headers is not None:
        told = "".join(family.headers.replace("{path}", file.path) + f"{file.text}\n" for file in others)
        return told + (family.headers.replace("{path}", path) if path and others else "")
    told = ""
    for file in others:
        lines = "".join(f"{comment} {line}".rstrip() + "\n" for line in file.text.splitlines())
        told += f"{comment} {file.path}\n{lines}"
    return told + (f"{comment} {path}\n" if path and others else "")


def _pieces(
    template: str, fields: Mapping[str, str], family: Family, vocabulary: FimVocabulary | None
) -> Iterator[Piece]:
    """A template cut at markers and fields; what a field holds is text, whatever stands in it."""
    usual = {names_of(marker)[0]: marker for marker in family.markers}
    cut = re.compile("|".join([*(f"({re.escape(name)})" for name in usual), _FIELD.pattern]))
    at = 0
    for found in cut.finditer(template):
        if found.start() > at:
            yield Piece(template[at : found.start()], marker=False)
        if found[0] in usual:
            yield Piece(found[0] if vocabulary is None else vocabulary.named(usual[found[0]]), marker=True)
        elif fields.get(found[0][1:-1]):
            yield Piece(fields[found[0][1:-1]], marker=False)
        at = found.end()
    if at < len(template):
        yield Piece(template[at:], marker=False)


def _joined(pieces: Sequence[Piece], vocabulary: FimVocabulary | None) -> Iterator[Piece]:
    """Neighbouring texts as one, with ids: a token may reach over their border."""
    merged: list[Piece] = []
    for piece in pieces:
        if merged and not piece.marker and not merged[-1].marker:
            merged[-1] = Piece(merged[-1].text + piece.text, marker=False)
        else:
            merged.append(piece)
    for number, piece in enumerate(merged):
        if vocabulary is None:
            yield piece
            continue
        after = number > 0 and merged[number - 1].marker and _is_suffix(merged, number)
        ids = vocabulary.marker(piece.text) if piece.marker else vocabulary.text(piece.text, after_marker=after)
        yield Piece(piece.text, piece.marker, tuple(ids))


def _is_suffix(pieces: Sequence[Piece], number: int) -> bool:
    """Whether the piece is the text after the cursor: the marker before it says so."""
    return "suf" in pieces[number - 1].text.lower()
