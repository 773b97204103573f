"""Edits on an engine in this process: what ``agspec copy kernel``, the benchmarks and the tests drive.

Any number of edits at a time, stepped together; ordinary requests may run beside them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agspec.engine.copies.request import CopyRequest

SCHEDULER = "agspec.engine.copies.scheduler.CopyScheduler"


@dataclass
class Edit:
    """One edit under way or done. ``tokens``: the program's, its end included once it came.

    ``times``: when each engine step brought tokens of it, in seconds, and ``counts`` how many; ``num_splices``: copies
    closed. ``stopped``: "length" where there was no room for more.
    """

    tokens: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    num_splices: int = 0
    stopped: str | None = None
    done: bool = False

    @property
    def num_steps(self) -> int:
        """Engine steps that brought tokens of it."""
        return len(self.times)


class Edits:
    """Edits of one engine, by name."""

    def __init__(self, llm: Any, end: int) -> None:
        self._engine = llm.llm_engine
        self._end = end
        self._live: dict[str, tuple[Edit, Any]] = {}

    @property
    def num_live(self) -> int:
        """Edits under way."""
        return len(self._live)

    def start(self, name: str, prompt: Sequence[int], request: CopyRequest, **params: Any) -> Edit:
        """Begin one; ``params``: of SamplingParams, greedy by default, and extra_args beside ours."""
        from vllm.sampling_params import RequestOutputKind

        sampling = request.sampling(**params, output_kind=RequestOutputKind.DELTA)
        made = self._made(name, list(prompt), sampling, resumable=True)
        self._engine.input_processor.assign_request_id(made)
        made.external_req_id = name
        edit = Edit()
        self._live[name] = (edit, made)
        self._send(made)
        return edit

    def step(self) -> list[Any]:
        """One step of the engine; what it brought for requests that are no edits."""
        others = []
        outputs = self._engine.step()
        now = time.perf_counter()
        for output in outputs:
            if output.request_id in self._live:
                self._take(output, now)
            else:
                others.append(output)
        return others

    def run(self) -> None:
        """Until no edit is under way."""
        while self._live:
            self.step()

    def abort(self, name: str) -> Edit:
        """End one, wherever it is."""
        edit, made = self._live.pop(name)
        self._engine.abort_request([made.request_id], internal=True)
        return edit

    def _take(self, output: Any, now: float) -> None:
        edit, made = self._live[output.request_id]
        came = output.outputs[0]
        if came.token_ids:
            edit.tokens += came.token_ids
            edit.times.append(now)
            edit.counts.append(len(came.token_ids))
        reason = came.finish_reason
        if edit.tokens and edit.tokens[-1] == self._end:
            edit.done = True
        elif reason == "length":
            edit.stopped = reason
        elif reason is not None:
            edit.num_splices += 1
        if edit.done or edit.stopped:
            del self._live[output.request_id]
            self._send(self._made(made.request_id, [0], made.params, resumable=False))

    def _made(self, name: str, prompt: list[int], params: Any, *, resumable: bool) -> Any:
        from vllm import TokensPrompt

        return self._engine.input_processor.process_inputs(
            name, TokensPrompt(prompt_token_ids=prompt), params,
            supported_tasks=self._engine.get_supported_tasks(), resumable=resumable,
        )  # fmt: skip

    def _send(self, made: Any) -> None:
        self._engine.output_processor.add_request(made, None, None, 0)
        self._engine.engine_core.add_request(made)
