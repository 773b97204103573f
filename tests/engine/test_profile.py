"""A profile times the steps that were asked for, and nothing is accepted."""

import numpy as np
import pytest

from agspec.costfile import read_cost_file
from agspec.engine.profile import LUCK, STEPS, cost_file, profile
from agspec.errors import InputError, SettingsError
from tests.engine.jobs import PROFILE

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def cells(outcome):
    return outcome["wrong drafts"]


def test_every_cell_is_timed(cells):
    assert set(cells.times) == {(batch, drafted) for batch in (1, 2) for drafted in (0, 4)}
    for times in cells.times.values():
        assert PROFILE.repeats <= len(times) <= PROFILE.repeats * STEPS
        assert min(times) > 0


def test_vllm_verifies_as_many_as_asked_and_accepts_none(cells):
    for (batch, drafted), times in cells.times.items():
        assert cells.num_draft_tokens[batch, drafted] == batch * drafted * len(times)
    assert cells.num_accepted_tokens <= LUCK * sum(cells.num_draft_tokens.values())


def test_file_says_how_it_was_measured(cells, tmp_path):
    file = cost_file(PROFILE, cells)
    assert np.diff(file.step_ms, axis=0).min() >= 0
    assert np.diff(file.step_ms, axis=1).min() >= 0
    assert file.measured[1][1] == pytest.approx(np.median(cells.times[2, 4]), abs=1e-3)
    assert (file.batches, file.drafted, file.dtype, file.estimate) == ((1, 2), (0, 4), "float32", False)
    assert "64 tokens of context a row" in file.source
    assert "cores" in file.machine
    path = tmp_path / "cost.json"
    path.write_text(file.to_json())
    assert read_cost_file(path) == file


def test_what_does_not_fit_is_said_before_the_engine_starts():
    with pytest.raises(SettingsError, match=r"^--max-model-len: want more than 8\d\d tokens .*, got 512$"):
        profile(PROFILE.model_copy(update={"context": 800, "max_model_len": 512}), lambda *told: None)


@pytest.mark.parametrize(
    ("room", "blocks", "line"),
    [
        (9, 100, r"^batch 2 x 4 drafted does not fit this engine: want 10 tokens a step, it takes 9 \("),
        (10, 5, r"^batch 2 x 4 drafted does not fit this engine: want 172 tokens in the KV cache, it holds 160$"),
    ],
)
def test_what_does_not_fit_the_engine(room, blocks, line):
    from types import SimpleNamespace

    from agspec.engine.profile import time_cells

    config = SimpleNamespace(
        scheduler_config=SimpleNamespace(max_num_batched_tokens=room),
        cache_config=SimpleNamespace(num_gpu_blocks=blocks, block_size=32),
    )
    llm = SimpleNamespace(llm_engine=SimpleNamespace(vllm_config=config))
    with pytest.raises(InputError, match=line):
        time_cells(llm, PROFILE, lambda *told: None)
