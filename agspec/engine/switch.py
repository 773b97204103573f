"""A proposer that holds every drafting method of a comparison, switched by rpc: one engine, one machine state."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from agspec.engine.proposer import Proposer
from agspec.settings import Settings

if TYPE_CHECKING:
    from vllm.config import VllmConfig

DRAFTED = ("none", "ngram", "suffix", "agspec", "agspec-suffix")


class SwitchProposer:
    """``none``, vLLM's own ``ngram`` and ``suffix`` proposers, and agspec over either lookup engine."""

    def __init__(self, vllm_config: VllmConfig) -> None:
        self._config = vllm_config
        self._agspec = Proposer(vllm_config)
        self._settings = self._agspec.settings
        self.runner: Any = None
        self._active: Callable[..., list[list[int]]] = _nothing
        self._ngram = self._make_ngram()

    def load_model(self, *args: object, **kwargs: object) -> None:
        """There is no model to load."""

    def attach(self, runner: Any) -> None:
        """See ``Proposer.attach``."""
        self.runner = runner
        self._agspec.attach(runner)

    def switch(self, method: str) -> None:
        """Draft with ``method`` from now on, cold."""
        self.reset()
        if method == "none":
            self._active = _nothing
        elif method == "ngram":
            self._active = self._propose_ngram
        elif method == "suffix":
            self._suffix = self._make_suffix()
            self._active = self._propose_suffix
        elif method in DRAFTED:
            lookup = "suffix-tree" if method == "agspec-suffix" else "sam"
            self._agspec.settings = self._settings.with_lookup(lookup)  # type: ignore[arg-type]
            self._agspec.reset()
            self._active = self._agspec.propose
        else:
            raise ValueError(f"want one of {', '.join(DRAFTED)}, got {method!r}")

    def reset(self) -> None:
        """Empty all stores."""
        self._agspec.reset()

    def settle(self) -> None:
        """See ``Proposer.settle``."""
        self._agspec.settle()

    def state(self) -> dict[str, Any]:
        """See ``Proposer.state``."""
        return self._agspec.state()

    @property
    def drafter(self) -> Any:
        """agspec's drafter."""
        return self._agspec.drafter

    @property
    def drafts(self) -> list[tuple[str, list[int]]]:
        """agspec's logged drafts."""
        return self._agspec.drafts

    @property
    def errors(self) -> Counter[str]:
        """agspec's errors by kind."""
        return self._agspec.errors

    def propose(
        self,
        sampled_token_ids: list[list[int]],
        num_tokens_no_spec: npt.NDArray[Any],
        token_ids_cpu: npt.NDArray[Any],
        slot_mappings: object = None,
    ) -> list[list[int]]:
        """The active method's drafts."""
        return self._active(sampled_token_ids, num_tokens_no_spec, token_ids_cpu)

    def _make_ngram(self) -> Any:
        from vllm.v1.spec_decode.ngram_proposer import NgramProposer

        s: Settings = self._settings
        proposer = NgramProposer(
            _with(
                self._config,
                num_speculative_tokens=s.ngram_length,
                prompt_lookup_min=s.ngram_min,
                prompt_lookup_max=s.ngram_max,
            )
        )
        import numpy as np

        proposer.propose(s.ngram_length, [[1]], np.full(1, 64, np.int32), np.ones((1, 64), np.int32))
        return proposer

    def _make_suffix(self) -> Any:
        from vllm.v1.spec_decode.suffix_decoding import SuffixDecodingProposer

        s: Settings = self._settings
        return SuffixDecodingProposer(
            _with(
                self._config,
                num_speculative_tokens=s.suffix_depth,
                suffix_decoding_max_tree_depth=s.suffix_depth,
                suffix_decoding_max_spec_factor=s.suffix_factor,
                suffix_decoding_min_token_prob=s.suffix_min_prob,
                suffix_decoding_max_cached_requests=s.suffix_cached_requests,
            )
        )

    def _propose_ngram(self, sampled: Any, num_tokens: Any, token_ids: Any) -> list[list[int]]:
        drafts: list[list[int]] = self._ngram.propose(self._ngram.k, sampled, num_tokens, token_ids)
        return drafts

    def _propose_suffix(self, sampled: Any, num_tokens: Any, token_ids: Any) -> list[list[int]]:
        suffix = self._suffix
        drafts: list[list[int]] = suffix.propose(suffix.num_speculative_tokens, self.runner.input_batch, sampled)
        return drafts


def _nothing(sampled: list[list[int]], num_tokens: Any, token_ids: Any) -> list[list[int]]:
    return [[] for _ in sampled]


def _with(config: Any, **values: Any) -> Any:
    """A copy of ``config`` whose speculative_config has other ``values``; the engine's own stays as it is."""
    changed = copy.copy(config)
    changed.speculative_config = copy.copy(config.speculative_config)
    for key, value in values.items():
        setattr(changed.speculative_config, key, value)
    return changed
