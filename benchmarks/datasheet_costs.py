"""Estimated cost profiles of common GPUs, from published figures: writes ``agspec/costs/*.json``.

``python -m benchmarks.datasheet_costs`` writes them; with ``--check`` it says which differ. A step reads the weights
and the rows' KV cache once, and computes every verified token; of the two times the longer counts whole and the shorter
in part, for they overlap but not wholly. Measure with ``agspec profile`` where you can.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from agspec.costfile import SHIPPED, CostFile

DATE = "2026-11-30"
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
DRAFTED = (0, 1, 2, 4, 8, 16, 32, 48, 64)
CONTEXT = 8192
"""Tokens in each row's KV cache."""
BYTES = 2
"""Of a bf16 number."""
MEMORY_SHARE = 0.9
"""vLLM's gpu_memory_utilization."""
BANDWIDTH_SHARE, FLOPS_SHARE, OVERLAP_SHARE = 0.8, 0.6, 0.25
STEP_MS, ROW_MS, TOKEN_MS = 3.0, 0.02, 0.002
"""Scheduling, launches and sampling: of a step, of each row, of each verified token."""


@dataclass(frozen=True)
class Gpu:
    """Figures of a datasheet: memory in GB, bandwidth in GB/s, dense bf16 tensor TFLOP/s with fp32 accumulation."""

    name: str
    memory_gb: float
    bandwidth_gb_s: float
    tflops: float


@dataclass(frozen=True)
class Model:
    """Shape by the public config; parameters in billions, ``lookup`` those of an input embedding that is not tied."""

    name: str
    parameters: float
    lookup: float
    layers: int
    heads: int
    kv_heads: int
    head_dim: int = 128

    @property
    def weight_gb(self) -> float:
        """All weights."""
        return self.parameters * BYTES

    @property
    def kv_gb(self) -> float:
        """KV cache of a row."""
        return 2 * self.layers * self.kv_heads * self.head_dim * CONTEXT * BYTES / 1e9

    @property
    def token_gflop(self) -> float:
        """Work of a verified token: a multiplication and an addition a weight, and attention over the context."""
        return 2 * (self.parameters - self.lookup) + 4 * self.layers * self.heads * self.head_dim * CONTEXT / 1e9


GPUS = {
    "a100": Gpu("NVIDIA A100 SXM 80GB", 80, 2039, 312),
    "h100": Gpu("NVIDIA H100 SXM 80GB", 80, 3350, 989),
    "h200": Gpu("NVIDIA H200 SXM 141GB", 141, 4800, 989),
    "rtx4090": Gpu("NVIDIA GeForce RTX 4090 24GB", 24, 1008, 165),
}
MODELS = {
    "1.5b": Model("Qwen2.5-1.5B", 1.54, 0.0, 28, 12, 2),
    "7b": Model("Qwen2.5-7B", 7.61, 0.54, 28, 28, 4),
    "32b": Model("Qwen2.5-32B", 32.5, 0.78, 64, 40, 8),
}


def step_ms(gpu: Gpu, model: Model, batch: int, drafted: int) -> float:
    """Estimated time of a step of ``batch`` rows with ``drafted`` drafted tokens each, in ms."""
    tokens = batch * (1 + drafted)
    read_gb = (model.parameters - model.lookup) * BYTES + batch * model.kv_gb
    reading = 1e3 * read_gb / (gpu.bandwidth_gb_s * BANDWIDTH_SHARE)
    computing = tokens * model.token_gflop / (gpu.tflops * FLOPS_SHARE)
    overlapped = max(reading, computing) + OVERLAP_SHARE * min(reading, computing)
    return round(overlapped + STEP_MS + ROW_MS * batch + TOKEN_MS * tokens, 3)


def estimate(gpu: Gpu, model: Model) -> CostFile | None:
    """The profile of ``model`` on ``gpu``, at the batch sizes that fit its memory; None where not one row does."""
    room = gpu.memory_gb * MEMORY_SHARE
    batches = tuple(batch for batch in BATCHES if model.weight_gb + batch * model.kv_gb <= room)
    if not batches:
        return None
    return CostFile(
        agspec_cost=1,
        model=model.name,
        machine=gpu.name,
        dtype="bfloat16",
        estimate=True,
        source=(
            f"datasheet: {gpu.bandwidth_gb_s:g} GB/s, {gpu.tflops:g} TFLOP/s dense bf16; assumed: "
            f"{BANDWIDTH_SHARE:.0%} and {FLOPS_SHARE:.0%} of these reached, {OVERLAP_SHARE:.0%} of the shorter not "
            f"overlapped, {STEP_MS:g} ms a step + {ROW_MS:g} ms a row + {TOKEN_MS:g} ms a token of overhead, "
            f"{CONTEXT} tokens of context a row"
        ),
        date=DATE,
        batches=batches,
        drafted=DRAFTED,
        step_ms=tuple(tuple(step_ms(gpu, model, batch, drafted) for drafted in DRAFTED) for batch in batches),
    )


def estimates() -> tuple[dict[str, CostFile], list[str]]:
    """Profiles by name, and the names of those whose model does not fit the GPU."""
    found = {f"{g}-{m}": estimate(gpu, model) for g, gpu in GPUS.items() for m, model in MODELS.items()}
    return {name: file for name, file in found.items() if file}, [name for name, file in found.items() if not file]


def main() -> None:
    """Write the profiles, or compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.datasheet_costs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if a shipped profile differs")
    options = parser.parse_args()
    files, left_out = estimates()
    differ = []
    for name, file in files.items():
        path: Path = SHIPPED / f"{name}.json"
        text = file.to_json()
        if options.check and (not path.exists() or path.read_text() != text):
            differ.append(name)
        elif not options.check:
            path.write_text(text)
    for name in left_out:
        print(f"{name}: left out, the weights and one row of {CONTEXT} tokens do not fit", file=sys.stderr)
    if differ:
        sys.exit(f"shipped profiles differ: {', '.join(differ)}")


if __name__ == "__main__":
    main()
