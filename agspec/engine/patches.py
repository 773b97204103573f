"""The one file that reaches into vLLM's insides, guarded by version: what vLLM 0.32 has no hook for.

``own_grammars``: grammars of one's own, for replays (see ``tape``) and copies. ``draft_to_the_limit``: no junk drafts
for a whole batch while one row is near the end of the context. ``spare_llvmlite``: lets vLLM start on a CPU after numba
was imported. ``mend_cpu_sampling``: two faults of vLLM 0.32's CPU fallbacks that spoil sampling
(temperature > 0) under speculation of any method, vLLM's own included.
"""

from __future__ import annotations

from typing import Any

from agspec.copyedit.token_machine import Vocabulary
from agspec.engine.tape import TAPE, TapeGrammar
from agspec.errors import AgspecError
from agspec.tokens import load_tokenizer

SUPPORTED = ("0.32.",)


def _guard(what: str) -> None:
    import vllm

    if not vllm.__version__.startswith(SUPPORTED):
        raise AgspecError(f"{what}: want vLLM {' or '.join(SUPPORTED)}x, got {vllm.__version__}")


def force_tapes() -> None:
    """Let recorded outputs be forced in this engine-core process; raises AgspecError when vLLM has moved."""
    own_grammars()


def own_grammars() -> None:
    """Wrap the grammar factory of this engine-core process; raises AgspecError when vLLM has moved.

    Requests that say so in their extra_args decode under a grammar of ours: a tape, or a copy program.
    """
    _guard("forced tapes and copies")
    from vllm.v1.structured_output import StructuredOutputManager
    from vllm.v1.structured_output.backend_types import StructuredOutputGrammar

    from agspec.engine.copies.grammar import CopyGrammar
    from agspec.engine.copies.request import CopyRequest

    create = getattr(StructuredOutputManager, "_create_grammar", None)
    if create is None:
        raise AgspecError("forced tapes and copies: vLLM's StructuredOutputManager has no _create_grammar any more")
    if getattr(create, "agspec", False):
        return
    for kind in (TapeGrammar, CopyGrammar):
        StructuredOutputGrammar.register(kind)

    def create_grammar(self: Any, request: Any) -> Any:
        extra = (request.sampling_params.extra_args if request.sampling_params else None) or {}
        if TAPE in extra:
            return TapeGrammar(extra[TAPE])
        edit = CopyRequest.of(extra)
        return create(self, request) if edit is None else CopyGrammar(edit, _vocabulary(self.vllm_config))

    create_grammar.agspec = True  # type: ignore[attr-defined]
    StructuredOutputManager._create_grammar = create_grammar  # type: ignore[method-assign]


_vocabularies: dict[str, Vocabulary] = {}


def _vocabulary(vllm_config: Any) -> Vocabulary:
    """Of the served model, read once a process."""
    name = str(vllm_config.model_config.tokenizer)
    if name not in _vocabularies:
        _vocabularies[name] = Vocabulary(load_tokenizer(name))
    return _vocabularies[name]


def draft_to_the_limit(runner: Any) -> bool:
    """Let ``runner`` ask the proposer up to the context's last token; False where vLLM has moved.

    vLLM 0.32 (GPUModelRunner.sample_tokens) gives every row of a batch ``num_speculative_tokens`` zeros to verify as
    long as the longest row is that near to max_model_len: the slowest step there is, for all rows, and nothing is
    accepted. A proposer that keeps each row's draft within the row's own room, as all of ours and vLLM's ngram and
    suffix do, need not be spared.
    """
    try:
        _guard("drafting near the context's end")
        room = int(runner.max_model_len) + int(runner.num_spec_tokens)
        if not callable(runner._input_fits_in_drafter) or runner.effective_drafter_max_model_len > room:
            return False
    except (AgspecError, AttributeError, TypeError, ValueError):
        return False
    runner.effective_drafter_max_model_len = room
    return True


def mend_cpu_sampling() -> bool:
    """Mend sampling under speculation where vLLM runs without Triton (CPU); False where there is nothing to mend.

    The fallback of ``expand_kernel`` writes temperature, top-k and top-p of each drafted token into a copy, so what the
    sampler reads is uninitialised memory; and ``apply_top_k_only`` raises, and ends the engine, in a step that drafts
    nothing. Raises AgspecError when vLLM has moved.
    """
    from vllm.triton_utils import HAS_TRITON

    if HAS_TRITON:
        return False
    _guard("sampling on a CPU")
    import torch
    from vllm.utils import cpu_triton_utils
    from vllm.v1.sample import rejection_sampler
    from vllm.v1.sample.ops import topk_topp_sampler

    if not hasattr(cpu_triton_utils, "_expand_kernel_impl") or not hasattr(topk_topp_sampler, "apply_top_k_only"):
        raise AgspecError("sampling on a CPU: vLLM's fallbacks are not where they were")

    def expand(
        output: Any, input_val: Any, cu_num_tokens: Any, replace_from: Any, replace_to: Any, MAX_NUM_TOKENS: Any = None
    ) -> None:
        counts = torch.diff(cu_num_tokens, prepend=cu_num_tokens.new_zeros(1))
        values = torch.where(input_val == replace_from, torch.full_like(input_val, replace_to), input_val)
        output.copy_(torch.repeat_interleave(values, counts))

    cpu_triton_utils._expand_kernel_impl = expand
    kernel: Any = getattr(rejection_sampler._expand, "kernel", None)
    if hasattr(kernel, "_impl"):
        kernel._impl = kernel.func = expand
    top_k_only = topk_topp_sampler.apply_top_k_only
    if not getattr(top_k_only, "agspec", False):

        def apply_top_k_only(logits: Any, k: Any) -> Any:
            return top_k_only(logits, k) if logits.shape[0] else logits

        apply_top_k_only.agspec = True  # type: ignore[attr-defined]
        topk_topp_sampler.apply_top_k_only = apply_top_k_only
    return True


def spare_llvmlite() -> bool:
    """Let vLLM start without Triton (CPU) after numba was imported; False where there is nothing to mend.

    Its CPU platform looks into every object of every module (``register_kernels``); llvmlite's library handle answers
    any attribute name, ``__dict__`` too, with a function, and the start-up dies of that. Dunder names are refused here.
    Raises AgspecError when vLLM has moved.
    """
    from vllm.triton_utils import HAS_TRITON

    if HAS_TRITON:
        return False
    _guard("starting on a CPU")
    from llvmlite.binding import ffi
    from vllm.triton_utils import dispatcher

    if not hasattr(dispatcher, "register_kernels"):
        raise AgspecError("starting on a CPU: vLLM's register_kernels is not where it was")
    handle = type(ffi.lib)
    answer = handle.__getattr__
    if getattr(answer, "agspec", False):
        return True

    def getattr_(self: Any, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return answer(self, name)

    getattr_.agspec = True  # type: ignore[attr-defined]
    handle.__getattr__ = getattr_
    return True
