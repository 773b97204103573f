"""A tokenizer as fill-in-the-middle prompts need it: markers by id, and a user's text never read as a marker."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property

import tokenizers

from agspec.errors import InputError
from agspec.fim.families import Family, Marker, names_of
from agspec.tokens import Tokenizer

_DUMMY = "☺"
"""Before a text, so that SentencePiece puts its dummy space before that; its tokens are then dropped."""


class FimVocabulary:
    """``tokenizer``'s ids, for prompts of ``family``."""

    def __init__(self, tokenizer: Tokenizer, family: Family) -> None:
        self._tokenizer = tokenizer
        self._family = family
        self.added = {str(token["content"]): int(token["id"]) for token in tokenizer.spec.get("added_tokens", [])}

    @cached_property
    def _plain(self) -> tokenizers.Tokenizer:
        """The tokenizer without added tokens: ``<|fim_middle|>`` in a user's code stays text."""
        return tokenizers.Tokenizer.from_str(
            json.dumps({**self._tokenizer.spec, "added_tokens": [], "post_processor": None})
        )

    @cached_property
    def _dummy(self) -> list[int]:
        return self._ids(_DUMMY)

    def text(self, text: str, *, after_marker: bool = False) -> list[int]:
        """Ids of a user's text; ``after_marker``: without SentencePiece's dummy space (encode_infilling)."""
        if not text:
            return []
        if after_marker and self._family.sentencepiece:
            return self._ids(_DUMMY + text)[len(self._dummy) :]
        return self._ids(text)

    def marker(self, text: str) -> list[int]:
        """A marker's one id; raises InputError where the tokenizer does not have it. Textual families: its text's."""
        if text in self.added:
            return [self.added[text]]
        if self._family.textual:
            return self._ids(text)
        raise InputError(f"{self._tokenizer.name}: want the added token {text} ({self._family.name}), found none")

    def named(self, marker: Marker) -> str:
        """A marker by the name that this tokenizer has it under, else by its usual one."""
        names = names_of(marker)
        return next((name for name in names if name in self.added), names[0])

    @cached_property
    def bos(self) -> list[int]:
        """What goes before a prompt: one token, where the tokenizer or the family wants it, else none."""
        if self._family.bos is False:
            return []
        found = self._tokenizer.backend.encode("", add_special_tokens=True).ids[:1]
        if not found and self._family.bos:
            found = [self.added[name] for name in ("<s>", "<bos>") if name in self.added][:1]
        return list(found)

    def stop_ids(self, stops: Sequence[str]) -> list[int]:
        """Ids of those of ``stops`` that are tokens, sorted."""
        return sorted({self.added[stop] for stop in stops if stop in self.added})

    def _ids(self, text: str) -> list[int]:
        found: list[int] = self._plain.encode(text, add_special_tokens=False).ids
        return found
