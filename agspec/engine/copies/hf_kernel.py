"""The kernel's table by transformers: one forward of N tokens over a cache, and decode steps over the same cache.

For any causal model, on a GPU where there is one; with random weights the shape alone counts, which is all that time
goes by. There is no drafting here.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from agspec import embedded
from agspec.engine.copies.kernel import TAIL, Job, Report, row_of, shuffled
from agspec.errors import InputError

if TYPE_CHECKING:
    import torch


def measure(job: Job, report: Report) -> list[dict[str, Any]]:
    """A row a cell; raises InputError where the model cannot be loaded."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = _model(job).to(device=device).eval()
    with torch.inference_mode():
        caches = {context: _prefilled(model, context, device) for context in job.contexts}
        cells = [_Cell(model, device, context, size, caches[context]) for context in job.contexts for size in job.sizes]
        cells[0].time()
        cells[0].forget()
        shuffled(cells, job.repeats, report)
    return [row_of(cell.context, cell.size, cell.splice, cell.steps, []) for cell in cells]


def _model(job: Job) -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    dtype = getattr(torch, job.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise InputError(f"--dtype: want one of torch's, got {job.dtype}")
    folder = embedded.resolve(job.model)
    try:
        if job.random_weights:
            from_config: Any = AutoModelForCausalLM.from_config
            return from_config(AutoConfig.from_pretrained(folder), dtype=dtype)
        return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    except (OSError, ValueError) as error:
        raise InputError(f"{job.model}: want a causal model of transformers, got: {error!s:.200}") from error


def _prefilled(model: Any, context: int, device: str) -> Any:
    from transformers import DynamicCache

    cache = DynamicCache(config=model.config)
    model(input_ids=_tokens(model, context, device), past_key_values=cache, use_cache=True, logits_to_keep=1)
    return cache


def _tokens(model: Any, number: int, device: str) -> torch.Tensor:
    import torch

    generator = torch.Generator().manual_seed(number)
    return torch.randint(0, model.config.vocab_size, (1, number), generator=generator).to(device)


class _Cell:
    """One context and number of tokens; the cache is cut back after each forward."""

    def __init__(self, model: Any, device: str, context: int, size: int, cache: Any) -> None:
        self.context, self.size = context, size
        self._model, self._device, self._cache = model, device, cache
        self._copied, self._one = _tokens(model, size, device), _tokens(model, 1, device)
        self.forget()

    def forget(self) -> None:
        """No times yet."""
        self.splice: list[float] = []
        self.steps: list[float] = []

    def time(self) -> None:
        """Once each way."""
        self.splice.append(self._forward(self._copied))
        self.steps.append(statistics.median(self._forward(self._one) for _ in range(TAIL)))
        self._cache.crop(self.context)

    def _forward(self, tokens: torch.Tensor) -> float:
        self._wait()
        started = time.perf_counter()
        self._model(input_ids=tokens, past_key_values=self._cache, use_cache=True, logits_to_keep=1)
        self._wait()
        return time.perf_counter() - started

    def _wait(self) -> None:
        import torch

        if self._device == "cuda":
            torch.cuda.synchronize()
