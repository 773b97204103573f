"""CapTable files: what ``agspec calibrate`` learned, as JSON, for one tokenizer.

Caps by role, the odds model's weights and the evidence behind them, and what the file was made from. Groups of few
weights are written as nested lists in the shape ``draft.odds.GROUPS`` gives them; the hashed groups as one packed text.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from agspec.draft.caps import MAX_DRAFT, CapTable, Limits
from agspec.draft.odds import GROUPS, HASHED, NUM_WEIGHTS, STARTS, OddsState
from agspec.errors import InputError
from agspec.messages import Role
from agspec.tokens import Tokenizer

FORMAT: Final = 2
MAX_PACKED = 1 << 24
"""Bytes that the hashed weights may unpack to."""
LARGEST = 1e30
"""No weight or evidence is as large: sums of them stay finite."""
ENOUGH = 20
"""Drafts that must have reached a position for it to be judged."""
_OURS = "agspec"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class CapRow(_Table):
    """Limits of a role; ``drafted[k]`` drafts reached position k, ``accepted[k]`` of them were accepted that far.

    ``num_tokens``: output tokens of the role's calls.
    """

    cap: int = Field(ge=0, le=MAX_DRAFT)
    factor: float = Field(Limits.factor, ge=0, le=MAX_DRAFT)
    offset: int = Field(Limits.offset, ge=0)
    floor: float | None = Field(None, gt=0, lt=1)
    num_tokens: NonNegativeInt = 0
    drafted: tuple[NonNegativeInt, ...] = Field((), max_length=MAX_DRAFT)
    accepted: tuple[NonNegativeInt, ...] = Field((), max_length=MAX_DRAFT)

    @model_validator(mode="after")
    def _counts_fit(self) -> CapRow:
        if len(self.drafted) != len(self.accepted) or any(
            a > d for a, d in zip(self.accepted, self.drafted, strict=True)
        ):
            raise PydanticCustomError(_OURS, "want as many accepted as drafted counts, none larger")
        return self

    @property
    def survival(self) -> tuple[float, ...]:
        """Of the drafts that reached each position, the share accepted that far, see ``survival_of``."""
        return survival_of(self.drafted, self.accepted)

    def limits(self) -> Limits:
        """As the drafter wants it."""
        return Limits(self.cap, self.factor, self.offset, self.floor)


def survival_of(drafted: Sequence[int], accepted: Sequence[int]) -> tuple[float, ...]:
    """Share accepted at each position as the caps are read off it: as if one more were right and one wrong, not rising.

    >>> survival_of([98, 48], [48, 48])
    (0.49, 0.49)
    """
    shares = ((a + 1) / (d + 2) for d, a in zip(drafted, accepted, strict=True))
    return tuple(accumulate(shares, min))


class TraceInfo(_Table):
    """A trace the file was made from."""

    name: str
    sha256: str
    num_sessions: NonNegativeInt
    num_calls: NonNegativeInt
    num_tokens: NonNegativeInt


class Bin(_Table):
    """Tokens whose chance lay in one tenth: how many, the mean chance foretold, the share that was right."""

    num_tokens: int = Field(ge=1)
    foretold: float = Field(ge=0, le=1)
    right: float = Field(ge=0, le=1)


class Evaluation(_Table):
    """How the odds did on sessions they had not seen: ``folds`` times trained on the rest and tested on a part.

    ``brier``: mean squared error of the chances of drafted tokens; ``brier_base``: of their mean share right.
    """

    folds: int
    brier: float
    brier_base: float
    reliability: tuple[Bin, ...] = Field(min_length=1)


class _Group(_Table):
    weights: list[Any]
    evidence: list[Any]


class _Odds(_Table):
    groups: dict[str, _Group]
    hashed: str


class CapFile(_Table):
    """The whole file. ``cost``: what it was calibrated for, in words."""

    agspec_caps: Literal[2] = FORMAT
    tokenizer: str
    tokenizer_name: str = ""
    date: str = ""
    tool_wire: str = ""
    lookup: str = ""
    cost: str = ""
    traces: tuple[TraceInfo, ...] = ()
    default: CapRow
    roles: dict[Role, CapRow] = Field(default_factory=dict)
    caution: float | None = Field(None, gt=0)
    evaluation: Evaluation | None = None
    odds: _Odds | None = None

    def table(self) -> CapTable:
        """As the drafter wants it."""
        rows: dict[str, Limits] = {role: row.limits() for role, row in self.roles.items()}
        return CapTable(self.default.limits(), rows, self.caution)

    def odds_state(self) -> OddsState | None:
        """The model's weights; raises ValueError where they do not fit this version's groups."""
        return None if self.odds is None else _unpack(self.odds)

    def to_json(self, *, odds: bool = True) -> str:
        """The file's text, a list of numbers a line; without the model's weights unless ``odds``."""
        told = self.model_dump(mode="json", exclude_none=True, exclude=None if odds else {"odds"})
        text = json.dumps(told, indent=1, ensure_ascii=False)
        return re.sub(r"\[[-\d.,e\s]+\]", lambda found: " ".join(found[0][1:-1].split()).join("[]"), text) + "\n"


def pack_odds(state: OddsState) -> dict[str, Any]:
    """``odds`` of a CapFile: weights to 3 digits, the hashed ones to 11 bits."""
    groups: dict[str, Any] = {}
    for i, (name, shape) in enumerate(GROUPS.items()):
        if name not in HASHED:
            part = slice(STARTS[i], STARTS[i + 1])
            groups[name] = {
                "weights": np.round(state.weights[part].astype(float), 3).reshape(shape).tolist(),
                "evidence": np.round(state.squares[part].astype(float), 2).reshape(shape).tolist(),
            }
    mask, most = _hashed(), float(np.finfo(np.float16).max)
    hashed = np.concatenate((state.weights[mask], state.squares[mask])).clip(-most, most).astype(np.float16)
    return {"groups": groups, "hashed": base64.b64encode(zlib.compress(hashed.tobytes(), 9)).decode()}


def _hashed() -> npt.NDArray[np.bool_]:
    mask = np.zeros(NUM_WEIGHTS, bool)
    for i, name in enumerate(GROUPS):
        mask[STARTS[i] : STARTS[i + 1]] = name in HASHED
    return mask


def _unpack(odds: _Odds) -> OddsState:
    weights, squares = np.zeros(NUM_WEIGHTS), np.ones(NUM_WEIGHTS)
    plain = {name: shape for name, shape in GROUPS.items() if name not in HASHED}
    if set(odds.groups) != set(plain):
        raise ValueError(f"odds.groups: want {', '.join(plain)}, got {', '.join(odds.groups) or 'none'}")
    for i, name in enumerate(GROUPS):
        if name in plain:
            for kind, into in (("weights", weights), ("evidence", squares)):
                found = _numbers(getattr(odds.groups[name], kind))
                if found is None or found.shape != plain[name]:
                    got = "others" if found is None else f"shape {_shape(found.shape)}"
                    raise ValueError(
                        f"odds.groups.{name}.{kind}: want numbers of shape {_shape(plain[name])}, got {got}"
                    )
                into[STARTS[i] : STARTS[i + 1]] = found.ravel()
    mask = _hashed()
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(odds.hashed, validate=True), MAX_PACKED)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"odds.hashed: {error}") from error
    if len(data) != 4 * int(mask.sum()):
        raise ValueError(f"odds.hashed: want {4 * int(mask.sum())} bytes, got {len(data)}")
    weights[mask], squares[mask] = np.split(np.frombuffer(data, np.float16), 2)
    if not (np.abs(weights).max() < LARGEST and 0 < squares.min() <= squares.max() < LARGEST):
        raise ValueError(f"odds: want weights and evidence under {LARGEST:g}, evidence above 0")
    return OddsState(weights.astype(np.float32), squares.astype(np.float32))


def _numbers(value: list[Any]) -> npt.NDArray[np.float64] | None:
    """None where ``value`` is ragged or holds anything else."""
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def read_cap_file(path: Path) -> CapFile:
    """The file, checked but for its tokenizer; InputError in one line."""
    return _read(path)[0]


def _read(path: Path) -> tuple[CapFile, OddsState | None]:
    try:
        file = CapFile.model_validate_json(path.read_bytes())
        return file, file.odds_state()
    except OSError as error:
        raise InputError(f"{path}: want a caps file, got: {error.strerror}") from error
    except ValidationError as error:
        raise InputError(f"{path}: {_told(error)}") from error
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


def _told(error: ValidationError) -> str:
    found = error.errors()
    for each in found:
        if each["loc"] == ("agspec_caps",):
            return f"want a caps file of format {FORMAT}, got format {each['input']!r:.20}: calibrate again"
    first = found[0]
    where = ".".join(str(part) for part in first["loc"]) or "file"
    got = "" if first["type"] == _OURS else f", got {first['input']!r:.60}"
    return f"{where}: {first['msg']}{got}"


def read_caps(path: Path, tokenizer: Tokenizer) -> tuple[CapTable, OddsState | None]:
    """Caps and odds of a file; InputError for a broken one and for one made for other token ids.

    A role it lacks uses ``default``.
    """
    file, odds = _read(path)
    if file.tokenizer != tokenizer.fingerprint:
        raise InputError(
            f"{path}: made for tokenizer {file.tokenizer}, the model has {tokenizer.fingerprint} ({tokenizer.name}): "
            "calibrate again"
        )
    return file.table(), odds
