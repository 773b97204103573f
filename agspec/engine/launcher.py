"""Starts a vLLM engine in this process with agspec in it."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from agspec import embedded
from agspec.engine import patches
from agspec.engine.config import to_environment
from agspec.errors import InputError, MissingExtraError
from agspec.settings import Settings

PROPOSER = "agspec.engine.proposer.Proposer"
SWITCH = "agspec.engine.switch.SwitchProposer"
WRONG = "agspec.engine.wrong.WrongProposer"
EXTENSION = "agspec.engine.extension.Extension"

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "2",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""Defaults; what the caller has set stays."""


def make_llm(
    name: str,
    *,
    settings: Settings | None,
    proposer: str | None = PROPOSER,
    dtype: str = "bfloat16",
    max_model_len: int | None = None,
    max_num_seqs: int = 16,
    enforce_eager: bool = True,
    **more: Any,
) -> Any:
    """A ``vllm.LLM`` with ``proposer`` drafting as ``settings`` say, or without speculation when it is None.

    ``name``: a model name or folder, or ``embedded``. Raises InputError when the engine does not start.
    """
    if importlib.util.find_spec("vllm") is None:
        raise MissingExtraError("vllm", "vllm")
    for key, value in ENVIRONMENT.items():
        os.environ.setdefault(key, value)
    os.environ.update(to_environment(settings or Settings()))
    folder = embedded.resolve(name)
    if name == "embedded":
        max_model_len = min(max_model_len or embedded.CONTEXT, embedded.CONTEXT)
    patches.spare_llvmlite()
    from vllm import LLM

    speculation: dict[str, Any] = {}
    if proposer is not None:
        speculation = {
            "speculative_config": {
                "method": "custom_class",
                "model": proposer,
                "num_speculative_tokens": (settings or Settings()).max_draft,
            },
            "worker_extension_cls": EXTENSION,
        }
    try:
        llm = LLM(
            model=folder,
            dtype=dtype,  # type: ignore[arg-type]
            max_model_len=max_model_len,
            max_num_seqs=max_num_seqs,
            enforce_eager=enforce_eager,
            enable_prefix_caching=True,
            disable_log_stats=False,
            seed=0,
            **speculation,
            **more,
        )
    except Exception as error:  # vLLM raises what its parts raise
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"vLLM did not start with model {name}: {reason[-1]}") from error
    if proposer is not None:
        llm.collective_rpc("agspec_attach")
    return llm
