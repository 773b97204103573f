"""The bytes behind each token id, for tokenizers of both kinds: byte-level BPE, and pieces with a byte fallback."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from agspec.errors import InputError
from agspec.tokens import Tokenizer

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_SPACE = "▁"


def token_bytes(tokenizer: Tokenizer) -> list[bytes | None]:
    """By id; None for special tokens and ids without a token. Raises InputError for a decoder of another kind.

    Byte-level BPE writes bytes as characters (GPT-2's table); SentencePiece writes spaces as ▁ and bytes as <0x0A>.
    """
    kinds = set(_decoders(tokenizer.spec.get("decoder") or {}))
    found: list[bytes | None] = [None] * tokenizer.vocab_size
    added = {entry["id"]: entry for entry in tokenizer.spec.get("added_tokens", [])}
    if "ByteLevel" in kinds:
        table = byte_table()

        def read(text: str) -> bytes:
            return bytes(table[char] for char in text)

    elif kinds & {"ByteFallback", "Metaspace"}:

        def read(text: str) -> bytes:
            byte = _BYTE.fullmatch(text)
            return bytes([int(byte[1], 16)]) if byte else text.replace(_SPACE, " ").encode()

    else:
        told = ", ".join(sorted(kinds)) or "none"
        raise InputError(f"tokenizer {tokenizer.name}: want a byte-level or byte-fallback decoder, got {told}")
    for text, number in tokenizer.backend.get_vocab(with_added_tokens=False).items():
        if number not in added:
            found[number] = read(text)
    for number, entry in added.items():
        if not entry.get("special"):
            found[number] = entry["content"].encode()
    return found


@lru_cache(maxsize=1)
def byte_table() -> dict[str, int]:
    """Character -> byte of byte-level BPE: printable bytes are themselves, the others follow from U+0100."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    table = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in set(printable))
    return {**table, **{chr(0x100 + number): byte for number, byte in enumerate(others)}}


def _decoders(spec: dict[str, Any]) -> Iterator[str]:
    yield str(spec.get("type"))
    for part in spec.get("decoders", ()):
        yield from _decoders(part)
