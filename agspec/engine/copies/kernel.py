"""``agspec copy kernel``: what it costs to copy N tokens, spliced in one forward, against decoding them.

The two ways of arXiv 2604.18170's kernel, and a third: decoding them with drafts from the context they stand in. Of
each cell, context x N, the medians of some repeats in shuffled order; tokens are forced, every forward pass is real.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from agspec.copyedit.machine import Machine
from agspec.copyedit.program import Copy, Gen, Program, show
from agspec.copyedit.source import Source
from agspec.copyedit.token_machine import TokenMachine, Vocabulary
from agspec.engine.config import ROLE, SESSION, TENANT
from agspec.engine.copies.edits import SCHEDULER, Edit, Edits
from agspec.engine.copies.request import CopyRequest
from agspec.engine.launcher import SWITCH, make_llm
from agspec.engine.phase import run_phase
from agspec.engine.wrong import ordinary_ids
from agspec.errors import SettingsError
from agspec.replay.environment import environment
from agspec.settings import Settings
from agspec.tokens import load_tokenizer

Report = Callable[[int, int, str], None]
TAIL = 12
"""Words decoded after a copy, whose steps are what one token costs."""
SPARE = 200
"""Tokens of context beside prompt and copies."""


class Job(BaseModel):
    """What to measure. ``sizes``: tokens copied; ``contexts``: tokens before them.

    ``backend``: vLLM with the splice, or the bare forward passes of transformers; there, ``random_weights`` takes the
    model's shape alone.
    """

    model_config = ConfigDict(frozen=True)

    model: str
    backend: Literal["vllm", "hf"] = "vllm"
    sizes: tuple[int, ...] = (8, 16, 32, 64, 128, 256, 512)
    contexts: tuple[int, ...] = (1000, 4000)
    repeats: int = 5
    dtype: str = "bfloat16"
    max_model_len: int = 8192
    eager: bool = True
    random_weights: bool = False


def kernel(job: Job, report: Report) -> dict[str, Any]:
    """The file: ``points`` (tokens, times faster than decode steps) at the first context, ``rows`` of all cells.

    Raises SettingsError where a cell does not fit the context.
    """
    need = max(job.contexts) + 2 * max(job.sizes) + SPARE
    if need > job.max_model_len:
        raise SettingsError(f"--max-model-len: want {need} tokens or more for these cells, got {job.max_model_len}")
    if max(job.sizes) >= min(job.contexts):
        raise SettingsError(f"--contexts: want more tokens than are copied ({max(job.sizes)}), got {min(job.contexts)}")
    rows = run_phase(_on_vllm if job.backend == "vllm" else _on_hf, job, report=report)
    points = [[row["tokens"], row["faster"]] for row in rows if row["context"] == job.contexts[0]]
    return {
        "kind": "copy kernel", "model": job.model, "backend": job.backend, "dtype": job.dtype,
        "environment": environment(), "points": points, "rows": rows,
    }  # fmt: skip


def row_of(context: int, size: int, splice: list[float], steps: list[float], drafted: list[float]) -> dict[str, Any]:
    """Medians of times in seconds, told in ms; without ``drafted`` nothing is told of drafts."""
    splice_ms, step_ms = (1000 * statistics.median(times) for times in (splice, steps))
    row = {
        "context": context, "tokens": size, "splice_ms": round(splice_ms, 2), "step_ms": round(step_ms, 2),
        "faster": round(size * step_ms / splice_ms, 2),
    }  # fmt: skip
    if drafted:
        token_ms = 1000 * statistics.median(drafted)
        row |= {"drafted_token_ms": round(token_ms, 2), "faster_than_drafted": round(size * token_ms / splice_ms, 2)}
    return row


def shuffled(cells: list[Any], repeats: int, report: Report) -> None:
    """``time()`` of each cell so many times, in shuffled rounds."""
    rng = np.random.default_rng(0)
    for turn in range(repeats):
        for done, i in enumerate(rng.permutation(len(cells)).tolist()):
            told = f"context {cells[i].context} x {cells[i].size} tokens"
            report(turn * len(cells) + done, repeats * len(cells), told)
            cells[i].time()


def _on_hf(job: Job, report: Report) -> list[dict[str, Any]]:
    from agspec.engine.copies.hf_kernel import measure

    return measure(job, report)


def _on_vllm(job: Job, report: Report) -> list[dict[str, Any]]:
    llm = make_llm(
        job.model, settings=Settings(), proposer=SWITCH, dtype=job.dtype, max_model_len=job.max_model_len,
        max_num_seqs=1, enforce_eager=job.eager, scheduler_cls=SCHEDULER, async_scheduling=False,
    )  # fmt: skip
    cells = [_Cell(llm, job, context, size) for context in job.contexts for size in job.sizes]
    cells[0].time()  # the first run compiles and allocates
    cells[0].forget()
    shuffled(cells, job.repeats, report)
    return [cell.row() for cell in cells]


class _Cell:
    """One context and number of tokens."""

    def __init__(self, llm: Any, job: Job, context: int, size: int) -> None:
        tokenizer = load_tokenizer(job.model)
        self.context, self.size = context, size
        self._llm = llm
        self._vocabulary = Vocabulary(tokenizer)
        lines = "".join(f"    value_{i} = compute({i * 37 % 101}, {i})\n" for i in range(size))
        self._text = tokenizer.decode(tokenizer.encode(lines)[:size])
        self._copy = Copy(1, Source(self._text.encode()).num_lines)
        rng = np.random.default_rng(size)
        filler = rng.choice(ordinary_ids(tokenizer), context - size).tolist()
        self._prompt = [*filler, *tokenizer.encode(self._text).tolist()]
        self.forget()

    def forget(self) -> None:
        """No times yet."""
        self._splice: list[float] = []
        self._steps: list[float] = []
        self._drafted: list[float] = []

    def time(self) -> None:
        """Once each way."""
        words = Gen(b"".join(b"word%d " % (i * i) for i in range(TAIL)))
        spliced = self._run("none", (self._copy, words))
        closed = len(self._tape((self._copy,))) - 2  # one step a token of the tag, then the end
        self._splice.append(spliced.times[closed + 1] - spliced.times[closed])
        self._steps.append(statistics.median(np.diff(spliced.times[closed + 1 :]).tolist()))
        whole = self._run("agspec", (Gen(self._text.encode()),))
        self._drafted.append((whole.times[-1] - whole.times[0]) / sum(whole.counts[1:]))

    def row(self) -> dict[str, Any]:
        """What was found."""
        size = len(self._vocabulary.encode(self._text.encode()))
        return row_of(self.context, size, self._splice, self._steps, self._drafted)

    def _sources(self, program: Program) -> tuple[str, ...]:
        return (self._text,) if self._copy in program else ()

    def _tape(self, program: Program) -> list[int]:
        sources = [Source(text.encode()) for text in self._sources(program)]
        return TokenMachine(Machine(sources, spans=False), self._vocabulary).tokens_of(show(program))

    def _run(self, method: str, program: Program) -> Edit:
        self._llm.reset_prefix_cache()
        self._llm.collective_rpc("agspec_switch", args=(method,))
        tape = self._tape(program)
        edits = Edits(self._llm, self._vocabulary.end)
        request = CopyRequest(sources=self._sources(program), max_tokens=len(tape), tape=tuple(tape))
        who = {SESSION: "s", TENANT: "t", ROLE: "editor"}
        edit = edits.start("kernel", self._prompt, request, extra_args=who)
        edits.run()
        return edit
