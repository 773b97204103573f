"""Forced tapes: a recorded output replayed on a real engine.

Every forward pass, every verified and every rejected token is real; only the sampled token is forced, by a grammar
whose state is a position in the recorded output. A request that carries TAPE in its extra_args, and any valid
``structured_outputs``, is forced once ``patches.force_tapes`` has run in the engine-core process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

TAPE = "forced_tape"
"""Key of extra_args; an API server hands it on, for nothing follows it where tapes are not forced."""


def allow_only(token: int, row: torch.Tensor) -> None:
    """Fill a row of vLLM's bitmask, int32 [ceil(vocabulary / 32)]: no token but this one."""
    row.zero_()
    bit = token % 32
    row[token // 32] = (1 << bit) if bit < 31 else -(1 << 31)


class TapeGrammar:
    """vLLM's StructuredOutputGrammar over a tape; after its end only its last token (end of turn) is allowed."""

    def __init__(self, tape: Sequence[int]) -> None:
        self._tape = list(tape)
        self._position = 0

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Advance; any token, for a drafted one may be wrong and is rolled back."""
        self._position += len(tokens)
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """All of them: cutting drafts here would hide what wrong drafts cost."""
        return tokens

    def rollback(self, num_tokens: int) -> None:
        """Step back."""
        self._position -= num_tokens

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Allow the tape's token at this position, int32 [rows, ceil(vocabulary / 32)]."""
        token = self._tape[min(self._position, len(self._tape) - 1)]
        allow_only(token, bitmask[batch_index])

    def is_terminated(self) -> bool:
        """Never: the request ends by its end token."""
        return False

    def reset(self) -> None:
        """Back to the start."""
        self._position = 0
