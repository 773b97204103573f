"""Compiled work on the rows of a step, spread over threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

from agspec.draft.addresses import Addresses
from agspec.draft.worker import Worker

ROWS = 3
"""A thread is worth waking for this many rows."""


class Team:
    """The caller's thread and up to ``threads`` - 1 more, started when first needed."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._workers: list[Worker] = []

    def run(self, work: Callable[..., None], desks: Addresses, *rest: Any) -> None:
        """``work(part, *rest)`` for parts of ``desks`` at once; raises what any of them raises.

        ``work`` lets other threads run (compiled, ``nogil``), and what it does for a desk is no other's business.
        """
        shares = max(1, min(self._threads, desks.size // ROWS))
        while len(self._workers) < shares - 1:
            self._workers.append(Worker("agspec-rows"))
        borders = [i * desks.size // shares for i in range(shares + 1)]
        begun = self._workers[: shares - 1]
        for worker, (start, end) in zip(begun, pairwise(borders[1:]), strict=True):
            worker.begin(partial(work, desks[start:end], *rest))
        try:
            work(desks[: borders[1]], *rest)
        finally:
            errors = [worker.wait() for worker in begun]
        for error in errors:
            if error is not None:
                raise error
