"""What other open files are about: their imports, and the signatures of what they define, by tree-sitter."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agspec.fim.languages import Language

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Tree

LONGEST = 1 << 18
"""Characters of a file that are parsed."""
CACHED = 64
"""Files whose outlines are kept."""
SIGNATURE = 240
"""Characters of a signature at most."""


@lru_cache(maxsize=32)
def parser_of(grammar: str) -> Parser:
    """tree-sitter's parser for a grammar of the language pack."""
    from tree_sitter_language_pack import get_parser

    return get_parser(grammar)  # type: ignore[arg-type]


def parse(text: str, language: Language) -> Tree | None:
    """The syntax tree of ``text`` (its first LONGEST characters); None without a grammar."""
    if language.grammar is None:
        return None
    return parser_of(language.grammar).parse(text[:LONGEST].encode("utf-8", "replace"))


@lru_cache(maxsize=CACHED)
def outline(text: str, language: Language) -> tuple[str, ...]:
    """Lines that tell what a file imports and defines: imports first, then signatures with their indentation."""
    tree = parse(text, language)
    if tree is None:
        return ()
    data = text[:LONGEST].encode("utf-8", "replace")
    imports, definitions = [], []
    for node, depth in _walk(tree.root_node, language, 0):
        if node.type in language.imports:
            imports.append(" ".join(_text(data, node.start_byte, node.end_byte).split()))
        else:
            definitions.append("    " * depth + _signature(data, node))
    return (*dict.fromkeys(imports), *definitions)


def borders(text: str, language: Language) -> tuple[int, ...]:
    """Characters at which a definition of the outermost two levels begins, ascending."""
    tree = parse(text, language)
    if tree is None:
        return ()
    data = text[:LONGEST].encode("utf-8", "replace")
    starts = [node.start_byte - node.start_point[1] for node, depth in _walk(tree.root_node, language, 0)
              if node.type in language.definitions and depth < 2]  # fmt: skip
    return tuple(len(data[:start].decode("utf-8", "replace")) for start in sorted(set(starts)))


def closers(text: str, cursor: int, cut: int, language: Language) -> str:
    """The lines of ``text`` from character ``cut`` on that close what stands open at ``cursor``, one a scope."""
    tree = parse(text, language)
    if tree is None or cut >= len(text):
        return ""
    data = text[:LONGEST].encode("utf-8", "replace")
    at, end = (len(text[:place].encode("utf-8", "replace")) for place in (cursor, cut))
    node: Node | None = tree.root_node.descendant_for_byte_range(at, at)
    lines: dict[int, str] = {}
    while node is not None:
        last = node.children[-1] if node.children else None
        if last is not None and last.start_byte >= end and last.type in (")", "]", "}", "end"):
            row = last.start_point[0]
            begin = data.rfind(b"\n", 0, last.start_byte) + 1
            stop = data.find(b"\n", last.start_byte)
            lines[row] = _text(data, begin, stop + 1 if stop >= 0 else len(data))
        node = node.parent
    return "".join(line for _, line in sorted(lines.items()) if len(line) <= SIGNATURE)


def _walk(node: Any, language: Language, depth: int) -> Iterator[tuple[Any, int]]:
    """Imports, and definitions with what is defined in them, in order."""
    for child in node.children:
        if child.type in language.imports:
            yield child, depth
        elif child.type in language.definitions:
            yield child, depth
            inner = child.child_by_field_name("definition") or child
            body = inner.child_by_field_name("body")
            if body is not None and "class" in inner.type + child.type:
                yield from _walk(body, language, depth + 1)
        elif child.type in ("export_statement", "namespace_declaration", "declaration_list", "decorated_definition",
                            "program", "module_declaration"):  # fmt: skip
            yield from _walk(child, language, depth)


def _signature(data: bytes, node: Any) -> str:
    """A definition up to its body, on one line."""
    inner = node.child_by_field_name("definition") or node
    body = inner.child_by_field_name("body") or inner.child_by_field_name("value")
    end = body.start_byte if body is not None else inner.end_byte
    return " ".join(_text(data, inner.start_byte, end).split())[:SIGNATURE].rstrip(" {=")


def _text(data: bytes, start: int, end: int) -> str:
    return data[start:end].decode("utf-8", "replace")
