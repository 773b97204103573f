"""Token arrays and tokenizers.

A token array (``Tokens``) is int32, 1-D, C-contiguous. Tokenizers are read with the ``tokenizers``
library, which gives the same ids as transformers' fast tokenizers without importing torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agspec.errors import InputError, TokensError

if TYPE_CHECKING:
    import tokenizers

Tokens = npt.NDArray[np.int32]
"""int32 [n], C-contiguous."""

_INT32 = np.iinfo(np.int32)
EMPTY: Tokens = np.zeros(0, np.int32)

REASONING_END = ("</think>", "</seed:think>", "[/THINK]", "</reasoning>")
"""Texts that close the reasoning part in the families vLLM 0.32 has parsers for; a draft never crosses one."""


def as_tokens(values: Sequence[int] | npt.NDArray[Any]) -> Tokens:
    """``values`` as int32 [n]; raises TokensError for another shape or a non-integer dtype.

    >>> as_tokens([1, 2]).dtype
    dtype('int32')
    """
    array = np.asarray(values)
    if array.dtype == np.int32 and array.ndim == 1 and array.flags.c_contiguous:
        return array
    if array.size == 0 and array.ndim == 1:
        return EMPTY
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TokensError(f"want int32 1-D, got {array.dtype} {array.ndim}-D")
    low, high = int(array.min()), int(array.max())
    if low < _INT32.min or high > _INT32.max:
        raise TokensError(f"want int32 1-D, got ids from {low} to {high}")
    return np.ascontiguousarray(array, np.int32)


END_TOKENS = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>", "<|endoftext|>", "</s>")
"""What ends a turn in the common chat templates, ChatML first: replays are rendered in it."""


@dataclass(frozen=True, eq=False)
class Tokenizer:
    """A tokenizer with what drafting needs to know of it.

    ``name`` is what the user typed. ``encode`` takes the text as a served prompt is taken: added tokens
    written in the text become their ids, no BOS is put in front.
    """

    name: str
    backend: tokenizers.Tokenizer
    spec: dict[str, Any] = field(repr=False)

    def encode(self, text: str) -> Tokens:
        """Ids of ``text``, int32 [n]."""
        return np.asarray(self.backend.encode(text, add_special_tokens=False).ids, np.int32)

    def encode_all(self, texts: Sequence[str]) -> list[Tokens]:
        """Ids of each of ``texts``, on all cores."""
        found = self.backend.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.asarray(encoding.ids, np.int32) for encoding in found]

    def decode(self, tokens: Sequence[int] | Tokens) -> str:
        """Text of ``tokens``, added tokens written out."""
        return self.backend.decode([int(t) for t in tokens], skip_special_tokens=False)

    @cached_property
    def vocab_size(self) -> int:
        """Largest id + 1."""
        return max(self.backend.get_vocab(with_added_tokens=True).values()) + 1

    @cached_property
    def texts(self) -> tuple[bytes, ...]:
        """UTF-8 text of each id alone; pieces of characters come as the replacement character."""
        ids = [[i] for i in range(self.vocab_size)]
        return tuple(text.encode() for text in self.backend.decode_batch(ids, skip_special_tokens=False))

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids of added tokens with ``special: true`` (EOS, chat control, padding)."""
        return frozenset(t["id"] for t in self.spec.get("added_tokens", []) if t.get("special"))

    @cached_property
    def barred_ids(self) -> Tokens:
        """Ids a draft never holds, sorted: special tokens (EOS among them) and the reasoning-end token."""
        ends = {self.backend.token_to_id(text) for text in REASONING_END}
        return as_tokens(sorted(self.special_ids | {i for i in ends if i is not None}))

    @cached_property
    def end_id(self) -> int:
        """Id of the token that ends a turn: the first of END_TOKENS the vocabulary has; InputError without one."""
        found = (self.backend.token_to_id(text) for text in END_TOKENS)
        for token in found:
            if token is not None:
                return token
        raise InputError(f"tokenizer {self.name}: want an end-of-turn token ({', '.join(END_TOKENS)}), found none")

    @cached_property
    def fingerprint(self) -> str:
        """sha256 (16 hex digits) over vocabulary, merges and added tokens: equal ids, equal fingerprint."""
        model = self.spec.get("model", {})
        kept = [model.get("vocab"), model.get("merges"), self.spec.get("added_tokens")]
        return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]


def load_tokenizer(name: str | Path) -> Tokenizer:
    """A ``tokenizer.json``, a folder holding one, ``embedded``, or a model name of the Hugging Face hub.

    Raises InputError naming what was tried. A hub name needs the network or a filled hub cache.
    """
    import tokenizers

    path = Path(name)
    if str(name) == "embedded":
        from agspec.embedded import prepare

        path = prepare()
    if path.is_dir():
        path = path / "tokenizer.json"
    if path.is_file():
        try:
            text = path.read_text("utf-8")
            spec = json.loads(text)
            backend = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # the library raises bare Exception on a foreign file
            reason = str(error).splitlines()[0]
            raise InputError(f"want a tokenizer.json, got {path}: {reason}") from error
        return Tokenizer(str(name), backend, spec)
    if path.suffix or path.is_absolute() or str(name).count("/") != 1:
        raise InputError(f"want a tokenizer.json, its folder, 'embedded' or a hub name, got {name}: no such file")
    try:
        backend = tokenizers.Tokenizer.from_pretrained(str(name))
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"tokenizer {name} is no file and not to be had from the hub: {reason}") from error
    return Tokenizer(str(name), backend, json.loads(backend.to_str()))
