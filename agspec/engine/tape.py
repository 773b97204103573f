"""Forced tapes: a recorded output replayed on a real engine. The one file that reaches into vLLM.

Every forward pass, every verified and every rejected token is real; only the sampled token is forced, by a grammar
whose state is a position in the recorded output. vLLM has no hook for a grammar of one's own, so this wraps
``StructuredOutputManager._create_grammar`` (vLLM 0.32) in the engine-core process; a request that carries TAPE in its
extra_args, and any valid ``structured_outputs``, is forced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agspec.errors import AgspecError

if TYPE_CHECKING:
    import torch

TAPE = "agspec_tape"
SUPPORTED = ("0.32.",)


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
        row = bitmask[batch_index]
        row.zero_()
        bit = token % 32
        row[token // 32] = (1 << bit) if bit < 31 else -(1 << 31)

    def is_terminated(self) -> bool:
        """Never: the request ends by its end token."""
        return False

    def reset(self) -> None:
        """Back to the start."""
        self._position = 0


def install() -> None:
    """Wrap the grammar factory of this process; raises AgspecError when vLLM has moved."""
    import vllm
    from vllm.v1.structured_output import StructuredOutputManager
    from vllm.v1.structured_output.backend_types import StructuredOutputGrammar

    if not vllm.__version__.startswith(SUPPORTED):
        raise AgspecError(f"forced tapes: want vLLM {' or '.join(SUPPORTED)}x, got {vllm.__version__}")
    create = getattr(StructuredOutputManager, "_create_grammar", None)
    if create is None:
        raise AgspecError("forced tapes: vLLM's StructuredOutputManager has no _create_grammar any more")
    if getattr(create, "agspec", False):
        return
    StructuredOutputGrammar.register(TapeGrammar)

    def create_grammar(self: Any, request: Any) -> Any:
        params = request.sampling_params
        tape = ((params.extra_args if params else None) or {}).get(TAPE)
        return create(self, request) if tape is None else TapeGrammar(tape)

    create_grammar.agspec = True  # type: ignore[attr-defined]
    StructuredOutputManager._create_grammar = create_grammar  # type: ignore[method-assign]
