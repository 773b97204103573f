"""Cost profiles: what a step of one model costs on one machine, measured or estimated. JSON, some shipped by name."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from agspec.draft.caps import MAX_DRAFT
from agspec.draft.cost import StepCost
from agspec.errors import InputError

SHIPPED = Path(__file__).resolve().parent / "costs"
_OURS: Final = "agspec_cost"

_Batch = Annotated[int, Field(ge=1)]
_Drafted = Annotated[int, Field(ge=0, le=MAX_DRAFT)]
_Milliseconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Table = Annotated[tuple[tuple[_Milliseconds, ...], ...], Field(min_length=1)]


class CostFile(BaseModel):
    """A cost profile: time of a decode step, in ms, a row for each of ``batches``, a column for each of ``drafted``.

    ``drafted`` are drafted tokens a row, from 0; ``step_ms`` ascends in both directions. ``measured`` are the medians
    ``step_ms`` was fitted to; None in an estimate.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    agspec_cost: Literal[1]
    model: str
    machine: str
    dtype: str
    estimate: bool
    source: str = Field(description="one line: measured how, or which figures of a datasheet")
    date: str
    batches: tuple[_Batch, ...] = Field(min_length=1)
    drafted: tuple[_Drafted, ...] = Field(min_length=2)
    step_ms: _Table
    measured: _Table | None = None

    @model_validator(mode="after")
    def _check(self) -> CostFile:
        for name, knots in (("batches", self.batches), ("drafted", self.drafted)):
            if any(b <= a for a, b in pairwise(knots)):
                raise _wrong(f"{name}: want ascending numbers", list(knots))
        if self.drafted[0] != 0:
            raise _wrong("drafted: want 0 first", self.drafted[0])
        for name, table in (("step_ms", self.step_ms), ("measured", self.measured)):
            if table is not None and [len(row) for row in table] != [len(self.drafted)] * len(self.batches):
                want = f"{name}: want {len(self.batches)} rows of {len(self.drafted)} times"
                raise _wrong(want, f"{len(table)} rows of {', '.join(str(n) for n in sorted({len(r) for r in table}))}")
        for i, batch in enumerate(self.batches):
            for j, drafted in enumerate(self.drafted):
                here = self.step_ms[i][j]
                for before in (self.step_ms[i - 1][j] if i else 0.0, self.step_ms[i][j - 1] if j else 0.0):
                    if here < before:
                        want = (
                            f"step_ms: want times that ascend, at batch {batch} x {drafted} drafted {before:g} or more"
                        )
                        raise _wrong(want, f"{here:g}")
        return self

    @property
    def cost(self) -> StepCost:
        """The table as the drafter and the simulator use it, in ms."""
        return StepCost(self.batches, tuple(map(float, self.drafted)), self.step_ms)

    def ratio(self, batch: int) -> float:
        """Mean cost of one more drafted token a row over a step without drafts, over the row of ``batches``."""
        row = self.step_ms[self.batches.index(batch)]
        return (row[-1] - row[0]) / (self.drafted[-1] * row[0])

    @property
    def change(self) -> float:
        """Largest share by which the fit moved a measured time; 0 in an estimate."""
        return max((abs(t / m - 1) for a, b in zip(self.step_ms, self.measured or (), strict=False)
                    for t, m in zip(a, b, strict=True)), default=0.0)  # fmt: skip

    def to_json(self) -> str:
        """The file's text: a key a line, a batch size's times a line."""
        lines = []
        for key, value in self.model_dump(mode="json", exclude_none=True).items():
            nested = isinstance(value, list) and isinstance(value[0], list)
            rows = ",\n".join(f"  {json.dumps(row)}" for row in value) if nested else ""
            lines.append(f' "{key}": ' + (f"[\n{rows}\n ]" if nested else json.dumps(value, ensure_ascii=False)))
        return "{\n" + ",\n".join(lines) + "\n}\n"


def list_costs() -> tuple[str, ...]:
    """Names of the shipped profiles, sorted."""
    return tuple(sorted(path.name.removesuffix(".json") for path in SHIPPED.glob("*.json")))


def read_cost_file(profile: str | Path) -> CostFile:
    """The profile in a file, or the shipped one of that name where no such file exists; raises InputError."""
    path = Path(profile)
    if str(profile) in list_costs() and not path.exists():
        path = SHIPPED / f"{profile}.json"
    try:
        return CostFile.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        known = ", ".join(list_costs())
        raise InputError(f"{profile}: want a cost profile's file or a shipped one ({known}), found neither") from error
    except OSError as error:
        raise InputError(f"{path}: want a cost profile, got: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        told = (
            first["msg"] if first["type"] == _OURS else f"{where or 'file'}: {first['msg']}, got {first['input']!r:.60}"
        )
        raise InputError(f"{path}: {told}") from error


def read_cost(profile: str | Path) -> StepCost:
    """The model in ``profile``, see ``read_cost_file``; times in ms."""
    return read_cost_file(profile).cost


def _wrong(want: str, got: object) -> PydanticCustomError:
    return PydanticCustomError(_OURS, "{told}", {"told": f"{want}, got {got}"})
