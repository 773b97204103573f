"""Cost profiles: read whole or refused in one line; shipped ones by name; fitted by the least change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agspec.build import step_cost
from agspec.costfile import list_costs, read_cost, read_cost_file
from agspec.draft.caps import DEFAULT_COST_RATIO
from agspec.draft.cost import StepCost
from agspec.engine.monotone import ascending
from agspec.errors import InputError, SettingsError
from agspec.settings import Settings, make_settings
from benchmarks.datasheet_costs import GPUS, MODELS, estimate, estimates

GOOD: dict[str, Any] = {
    "agspec_cost": 1, "model": "m", "machine": "two cores", "dtype": "bfloat16", "estimate": False,
    "source": "by hand", "date": "2026-01-01", "batches": [1, 4], "drafted": [0, 2, 8],
    "step_ms": [[20.0, 22.0, 30.0], [34.0, 40.0, 66.0]],
}  # fmt: skip
TABLES = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 8)), elements=st.floats(0.01, 1e4))


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "cost.json"
    path.write_text(json.dumps({**GOOD, **changes}))
    return path


def is_ascending(table: Any) -> bool:
    return bool((np.diff(table, axis=0) >= 0).all() and (np.diff(table, axis=1) >= 0).all())


def test_file_becomes_the_model(tmp_path: Path) -> None:
    cost = read_cost(write(tmp_path))
    assert cost == StepCost((1, 4), (0.0, 2.0, 8.0), ((20.0, 22.0, 30.0), (34.0, 40.0, 66.0)))
    assert cost.step(1, 2) == 22.0
    assert cost.step(4, 4 * 8) == 66.0


def test_written_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "again.json"
    for measured in (None, ((21.0, 21.0, 30.0), (34.0, 40.0, 66.0))):
        file = read_cost_file(write(tmp_path)).model_copy(update={"measured": measured})
        path.write_text(file.to_json())
        assert read_cost_file(path) == file
        assert file.change == pytest.approx(0.0 if measured is None else 1 - 20 / 21)
    assert "\n  [20.0, 22.0, 30.0],\n" in path.read_text()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"agspec_cost": 2}, "agspec_cost: Input should be 1, got 2"),
        ({"speed": 3}, "speed: Extra inputs are not permitted, got 3"),
        ({"drafted": [0, 2, 129]}, "drafted.2: Input should be less than or equal to 128, got 129"),
        ({"drafted": [0]}, "drafted: Tuple should have at least 2 items after validation, not 1, got [0]"),
        ({"drafted": [1, 2, 8]}, "drafted: want 0 first, got 1"),
        ({"drafted": [0, 2, 2]}, "drafted: want ascending numbers, got [0, 2, 2]"),
        ({"batches": [4, 1]}, "batches: want ascending numbers, got [4, 1]"),
        ({"batches": [1, 2, 4]}, "step_ms: want 3 rows of 3 times, got 2 rows of 3"),
        ({"measured": [[1.0], [2.0]]}, "measured: want 2 rows of 3 times, got 2 rows of 1"),
        ({"step_ms": [[20.0, 0.0, 30.0], [34.0, 40.0, 66.0]]}, "step_ms.0.1: Input should be greater than 0, got 0.0"),
        (
            {"step_ms": [[20.0, 22.0, 21.0], [34.0, 40.0, 66.0]]},
            "step_ms: want times that ascend, at batch 1 x 8 drafted 22 or more, got 21",
        ),
        (
            {"step_ms": [[20.0, 22.0, 30.0], [19.5, 40.0, 66.0]]},
            "step_ms: want times that ascend, at batch 4 x 0 drafted 20 or more, got 19.5",
        ),
    ],
)
def test_broken_files_are_one_line(changes: dict[str, Any], line: str, tmp_path: Path) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(InputError) as caught:
        read_cost(path)
    assert str(caught.value) == f"{path}: {line}"


def test_what_is_no_profile(tmp_path: Path) -> None:
    path = tmp_path / "cost.json"
    path.write_text("step: 20 ms")
    with pytest.raises(InputError, match=r"^\S+/cost.json: file: Invalid JSON: expected value"):
        read_cost(path)
    with pytest.raises(InputError, match=r": want a cost profile, got: Is a directory$"):
        read_cost(tmp_path)
    with pytest.raises(InputError) as caught:
        read_cost("b200-7b")
    known = ", ".join(list_costs())
    told = f"b200-7b: want a cost profile's file or a shipped one ({known}), found neither"
    assert str(caught.value) == told


@pytest.mark.parametrize("name", list_costs())
def test_shipped_profiles_are_whole(name: str) -> None:
    file = read_cost_file(name)
    assert file.estimate is (name in estimates()[0])
    assert file.estimate is (file.measured is None)
    assert file.batches[0] == 1
    assert 0 <= file.cost.share(1, 0) < 1


def test_shipped_estimates_are_what_the_datasheets_give() -> None:
    files, left_out = estimates()
    assert left_out == ["rtx4090-32b"]
    assert len(files) == 11
    for name, file in files.items():
        assert read_cost_file(name) == file, "python -m benchmarks.datasheet_costs"


def test_estimates_have_the_limits_of_the_machine() -> None:
    """One row waits for memory, a full batch for arithmetic: one more token is all but free, or costs its work."""
    for gpu in GPUS.values():
        file = estimate(gpu, MODELS["7b"])
        assert file is not None
        assert file.step_ms[0][0] > 1e3 * MODELS["7b"].weight_gb / gpu.bandwidth_gb_s * 0.9
        assert file.cost.share(1, 4) < 0.005
    full = estimate(GPUS["h100"], MODELS["7b"])
    assert full is not None
    more = full.cost.step(64, 64 * 48) - full.cost.step(64, 64 * 32)
    assert more > 1e3 * 64 * 16 * MODELS["7b"].token_gflop / 1e3 / GPUS["h100"].tflops


@settings(deadline=None)
@given(table=TABLES)
def test_fit_ascends_and_keeps_what_ascends(table: Any) -> None:
    fitted = ascending(table)
    assert is_ascending(fitted)
    assert fitted.min() >= table.min() - 1e-9
    assert fitted.max() <= table.max() * (1 + 1e-9)
    np.testing.assert_array_equal(ascending(fitted), fitted)
    steps = np.cumsum(np.cumsum(table, axis=0), axis=1)
    np.testing.assert_array_equal(ascending(steps), steps)


@settings(deadline=None)
@given(table=TABLES, seed=st.integers(0, 99))
def test_no_ascending_table_is_nearer(table: Any, seed: int) -> None:
    fitted = ascending(table)
    rng = np.random.default_rng(seed)
    best = np.square(fitted - table).sum()
    tolerance = 1e-6 * np.square(table).sum()
    for scale in (0.001, 0.03, 1.0):
        other = fitted + scale * table.max() * rng.standard_normal(table.shape)
        other = np.maximum.accumulate(np.maximum.accumulate(other, axis=0), axis=1)
        for between in (1.0, 0.5, 0.01):
            near = fitted + between * (other - fitted)
            assert np.square(near - table).sum() >= best - tolerance


def test_fit_by_hand() -> None:
    np.testing.assert_allclose(ascending(np.array([[1.0, 3.0, 2.0, 5.0]])), [[1, 2.5, 2.5, 5]])
    np.testing.assert_allclose(ascending(np.array([[2.0, 5.0], [1.0, 6.0]])), [[1.5, 5], [1.5, 6]])


def test_settings_name_a_profile_or_a_ratio(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert step_cost(make_settings({"cost": str(path)}, where="flags")) == read_cost(path)
    assert step_cost(Settings(cost=Path("h100-7b"))) == read_cost("h100-7b")
    assert step_cost(Settings(cost_ratio=0.2)) == StepCost.from_ratio(0.2)
    assert step_cost(Settings()) == StepCost.from_ratio(DEFAULT_COST_RATIO)
    with pytest.raises(SettingsError) as caught:
        make_settings({"cost": "h100-7b", "cost_ratio": 0.2}, where="flags")
    assert str(caught.value) == "flags: settings: want cost or cost_ratio, got both"
