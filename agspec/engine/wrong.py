"""A proposer that drafts a chosen number of wrong tokens for every row: the price of verifying, nothing gained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agspec.engine import patches
from agspec.tokens import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from vllm.config import VllmConfig

POOL = 1 << 16


class WrongProposer:
    """Random ordinary tokens: a model that decodes greedily wants another one but once in a vocabulary's size.

    ``length`` tokens a row, 0 at first; ``agspec_draft_wrong`` sets it by rpc.
    """

    def __init__(self, vllm_config: VllmConfig) -> None:
        patches.mend_cpu_sampling()
        model = vllm_config.model_config
        tokenizer = load_tokenizer(model.tokenizer)
        usable = ordinary_ids(tokenizer, vocab_size=int(model.get_vocab_size()))
        self._pool: list[int] = np.random.default_rng(0).choice(usable, POOL).tolist()
        self._next = 0
        self.length = 0

    def load_model(self, *args: object, **kwargs: object) -> None:
        """There is no model to load."""

    def attach(self, runner: Any) -> None:
        """It need not know its rows' requests."""

    def propose(
        self,
        sampled_token_ids: list[list[int]],
        num_tokens_no_spec: npt.NDArray[Any],
        token_ids_cpu: npt.NDArray[Any],
        slot_mappings: object = None,
    ) -> list[list[int]]:
        """``length`` tokens for every row but a partial prefill."""
        return [self._draw() if sampled else [] for sampled in sampled_token_ids]

    def _draw(self) -> list[int]:
        if self._next + self.length > POOL:
            self._next = 0
        start = self._next
        self._next += self.length
        return self._pool[start : self._next]


def ordinary_ids(tokenizer: Tokenizer, *, vocab_size: int | None = None) -> npt.NDArray[np.int64]:
    """Ids of the vocabulary, below ``vocab_size``, that are not special, int64 [n], ascending."""
    size = tokenizer.vocab_size if vocab_size is None else min(tokenizer.vocab_size, vocab_size)
    return np.setdiff1d(np.arange(size), tokenizer.barred_ids)
