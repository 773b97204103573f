"""Threads of the drafter: work is done whole, errors come back, and drafts do not depend on how many there are."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest

from agspec.draft.request import Row
from agspec.draft.store import Budgets, Intake, Store
from agspec.draft.team import Team
from agspec.draft.worker import Worker
from agspec.tokens import Tokens, as_tokens
from tests.drafting import make, text


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("rows", [0, 1, 5, 6, 16, 64])
def test_every_row_is_done_once(threads: int, rows: int) -> None:
    done: list[list[int]] = []
    Team(threads).run(lambda part: done.append(part.tolist()), np.arange(rows))
    assert sorted(row for part in done for row in part) == list(range(rows))
    assert len(done) <= threads


@pytest.mark.parametrize("bad", [0, 15])
def test_what_a_part_raises_comes_back_when_all_have_ended(bad: int) -> None:
    ended: list[int] = []

    def work(part: np.ndarray) -> None:
        if bad in part:
            raise ValueError("no such row")
        time.sleep(0.05)
        ended.append(1)

    team = Team(2)
    for _ in range(2):
        with pytest.raises(ValueError, match="no such row"):
            team.run(work, np.arange(16))
    assert len(ended) == 2


def test_a_worker_ends_with_its_owner() -> None:
    def alive() -> bool:
        return any(thread.name == "short-lived" for thread in threading.enumerate())

    worker = Worker("short-lived")
    worker.begin(lambda: 1 / 0)
    assert isinstance(worker.wait(), ZeroDivisionError)
    worker.begin(lambda: None)
    assert worker.wait() is None
    assert alive()
    del worker
    gc.collect()
    deadline = time.monotonic() + 5
    while alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive()


def drafts(threads: int) -> list[list[int]]:
    """What sixteen rows of five sessions get, step by step; stores small enough for several segments."""
    rng = np.random.default_rng(8)
    drafter = make(threads=threads, budgets=Budgets(session=2 << 20, shared=2 << 20, tokens_per_step=500))
    source = rng.integers(0, 300, 3000).astype(np.int32)
    sequences: list[Tokens] = []
    for i in range(16):
        prompt = source[int(rng.integers(2000)) :][:600].copy()
        drafter.start(f"r{i}", prompt, session=f"s{i % 5}", tenant="t" if i % 5 else "u")
        sequences.append(prompt)
    made: list[list[int]] = []
    last: list[list[int]] = [[] for _ in sequences]
    for _ in range(60):
        rows = []
        for i, sequence in enumerate(sequences):
            kept = last[i][: int(rng.integers(0, len(last[i]) + 1))]
            new = [*kept, int(source[int(rng.integers(3000))])]
            sequences[i] = as_tokens([*sequence.tolist(), *new])
            rows.append(Row(f"r{i}", sequences[i][-64:], len(new), 48))
        last = [[] if draft is None else draft.tokens.tolist() for draft in drafter.propose(rows)]
        made += last
    return made


def test_drafts_do_not_depend_on_the_number_of_threads() -> None:
    one = drafts(1)
    assert sum(map(bool, one)) > 100
    assert drafts(2) == one
    assert drafts(5) == one


# --- what was written lags a step ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 7])
def test_written_text_is_in_its_store_from_the_next_step_on(rows: int) -> None:
    """Whole, whatever the pace of what else waits; with few rows at once, with many in the thread."""
    intake = Intake(tokens_per_step=64)
    stores = [Store("session", make().homes._make, 8 << 20) for _ in range(rows)]
    documents = [store.open() for store in stores]
    for store, document in zip(stores, documents, strict=True):
        intake.append(store, document, text(0, 100))
    intake.begin()
    intake.take_in()
    assert [store.lookup.num_tokens for store in stores if store.lookup] == [100] * rows


def test_written_text_of_a_dropped_store_goes_nowhere() -> None:
    intake = Intake(tokens_per_step=64)
    store = Store("session", make().homes._make, 8 << 20)
    intake.append(store, store.open(), text(0, 100))
    intake.drop(store)
    intake.take_in()
    assert store.lookup is not None
    assert store.lookup.num_tokens == 0
