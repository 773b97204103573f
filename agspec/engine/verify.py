"""``agspec verify``: the same greedy text with and without agspec, token by token, free-running, in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agspec.engine.launcher import PROPOSER, make_llm
from agspec.engine.phase import run_phase
from agspec.settings import Settings

LOGIT_GAP = 1e-4
"""Two best logits closer than this may swap between kernels of different widths."""
PROMPTS = (
    "Write a Python function that parses a CSV line with quoted fields, then write three unit tests for it.",
    "Here is a file:\n```python\ndef area(w, h):\n    return w * h\n\n\n"
    "def volume(w, h, d):\n    return area(w, h) * d\n"
    "```\nRewrite the whole file with type hints and docstrings.",
    "List the numbers from 1 to 60, one a line, each as: item N.",
    "Explain what a suffix automaton is, in two paragraphs, then give a small example.",
    "Repeat this JSON five times, each with another id:\n"
    '{"id": 1, "name": "bash", "arguments": {"command": "ls -la src"}}',
)
"""Short prompts of our own: code, a rewrite, a list, prose, repetition."""


def verify(
    model: str, prompts: Sequence[str], *, max_tokens: int, batch: int, settings: Settings, dtype: str = "float32"
) -> dict[str, Any]:
    """``{"identical", "prompts": [...]}``; each prompt: its tokens, and where and by how small a logit gap runs part.

    Engines without speculation and with agspec run one after the other, each in a process of its own.
    """
    plain = run_phase(_generate, model, tuple(prompts), max_tokens, batch, settings, dtype, False)
    drafted = run_phase(_generate, model, tuple(prompts), max_tokens, batch, settings, dtype, True)
    rows = []
    for prompt, (want, gaps), (got, _) in zip(prompts, plain["outputs"], drafted["outputs"], strict=True):
        part = next((i for i in range(max(len(want), len(got))) if want[i : i + 1] != got[i : i + 1]), None)
        gap = gaps[part] if part is not None and part < len(gaps) else None
        rows.append({"prompt": prompt[:60], "num_tokens": len(want), "identical": part is None, "parts_at": part,
                     "logit_gap": gap})  # fmt: skip
    return {
        "identical": all(row["identical"] for row in rows),
        "dtype": dtype,
        "batch": batch,
        "prompts": rows,
        "drafted": drafted["stats"],
    }


def _generate(
    model: str, prompts: tuple[str, ...], max_tokens: int, batch: int, settings: Settings, dtype: str, drafted: bool
) -> dict[str, Any]:
    from vllm import SamplingParams

    llm = make_llm(
        model, settings=settings, proposer=PROPOSER if drafted else None, dtype=dtype, max_num_seqs=batch,
        max_model_len=4096,
    )  # fmt: skip
    tokenizer = llm.get_tokenizer()
    params = SamplingParams(
        temperature=0.0, max_tokens=max_tokens, ignore_eos=True, detokenize=False, logprobs=None if drafted else 2
    )
    texts = [f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n" for prompt in prompts]
    inputs = [{"prompt_token_ids": tokenizer.encode(text, add_special_tokens=False)} for text in texts]
    outputs = llm.generate(inputs, params, use_tqdm=False)
    stats = None
    if drafted:
        stats = llm.collective_rpc("agspec_stats")[0]
        stats.pop("drafts")
    return {"outputs": [(list(o.outputs[0].token_ids), _gaps(o.outputs[0].logprobs)) for o in outputs], "stats": stats}


def _gaps(logprobs: Any) -> list[float]:
    """Difference of the two best logits at each position."""
    gaps = []
    for position in logprobs or []:
        best = sorted((entry.logprob for entry in position.values()), reverse=True)[:2]
        gaps.append(float(best[0] - best[1]) if len(best) == 2 else float("inf"))
    return gaps
