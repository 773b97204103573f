"""CapTable files: what ``agspec calibrate`` learned, as JSON, for one tokenizer.

Caps by role, the odds model's weights and the evidence behind them, and what the file was made from. Groups of few
weights are written as nested lists in the shape ``draft.odds.GROUPS`` gives them; the hashed groups as one packed text.
"""

from __future__ import annotations

import base64
import zlib
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agspec.draft.caps import MAX_DRAFT, CapTable, Limits
from agspec.draft.odds import GROUPS, HASHED, NUM_WEIGHTS, STARTS, OddsState
from agspec.errors import InputError
from agspec.messages import Role
from agspec.tokens import Tokenizer

FORMAT = 2
MAX_PACKED = 1 << 24
"""Bytes that the hashed weights may unpack to."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CapRow(_Table):
    """Limits of a role; ``drafted[k]`` drafts reached position k, ``accepted[k]`` of them were accepted that far."""

    cap: int = Field(ge=0, le=MAX_DRAFT)
    factor: float = Field(Limits.factor, ge=0)
    offset: int = Field(Limits.offset, ge=0)
    floor: float | None = Field(None, gt=0, lt=1)
    num_tokens: int = 0
    drafted: tuple[int, ...] = ()
    accepted: tuple[int, ...] = ()

    def limits(self) -> Limits:
        """As the drafter wants it."""
        return Limits(self.cap, self.factor, self.offset, self.floor)


class TraceInfo(_Table):
    """A trace the file was made from."""

    name: str
    sha256: str
    num_sessions: int
    num_calls: int
    num_tokens: int


class Bin(_Table):
    """Tokens whose chance lay in one tenth: how many, the mean chance foretold, the share that was right."""

    num_tokens: int
    foretold: float
    right: float


class Evaluation(_Table):
    """How the odds did on sessions they had not seen: ``folds`` times trained on the rest and tested on a part.

    ``brier``: mean squared error of the chances of drafted tokens; ``brier_base``: of their mean share right.
    """

    folds: int
    brier: float
    brier_base: float
    reliability: tuple[Bin, ...]


class _Odds(_Table):
    groups: dict[str, Any]
    hashed: str


class CapFile(_Table):
    """The whole file."""

    agspec_caps: Literal[2] = 2
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


def pack_odds(state: OddsState) -> dict[str, Any]:
    """``odds`` of a CapFile."""
    groups: dict[str, Any] = {}
    for i, (name, shape) in enumerate(GROUPS.items()):
        if name not in HASHED:
            part = slice(STARTS[i], STARTS[i + 1])
            groups[name] = {
                "weights": np.round(state.weights[part].astype(float), 3).reshape(shape).tolist(),
                "evidence": np.round(state.squares[part].astype(float), 2).reshape(shape).tolist(),
            }
    hashed = np.concatenate((state.weights[_hashed()], state.squares[_hashed()])).astype(np.float16)
    return {"groups": groups, "hashed": base64.b64encode(zlib.compress(hashed.tobytes(), 9)).decode()}


def _hashed() -> npt.NDArray[np.bool_]:
    mask = np.zeros(NUM_WEIGHTS, bool)
    for i, name in enumerate(GROUPS):
        mask[STARTS[i] : STARTS[i + 1]] = name in HASHED
    return mask


def _unpack(odds: _Odds) -> OddsState:
    weights, squares = np.zeros(NUM_WEIGHTS, np.float32), np.ones(NUM_WEIGHTS, np.float32)
    for i, (name, shape) in enumerate(GROUPS.items()):
        if name in HASHED:
            continue
        for kind, into in (("weights", weights), ("evidence", squares)):
            found = np.asarray((odds.groups.get(name) or {}).get(kind, []), np.float32)
            if found.shape != shape:
                raise ValueError(f"odds.groups.{name}.{kind}: want numbers of shape {shape}, got {found.shape}")
            into[STARTS[i] : STARTS[i + 1]] = found.ravel()
    mask = _hashed()
    data = zlib.decompressobj().decompress(base64.b64decode(odds.hashed, validate=True), MAX_PACKED)
    hashed = np.frombuffer(data, np.float16)
    if hashed.size != 2 * int(mask.sum()):
        raise ValueError(f"odds.hashed: want {2 * int(mask.sum())} numbers, got {hashed.size}")
    weights[mask], squares[mask] = np.split(hashed.astype(np.float32), 2)
    if not (np.isfinite(weights).all() and np.isfinite(squares).all() and squares.min() > 0):
        raise ValueError("odds: want finite weights and evidence above 0")
    return OddsState(weights, squares)


def read_cap_file(path: Path) -> CapFile:
    """The file, checked but for its tokenizer; InputError in one line."""
    try:
        file = CapFile.model_validate_json(path.read_bytes())
        file.odds_state()
    except OSError as error:
        raise InputError(f"{path}: want a caps file, got: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "file"
        raise InputError(f"{path}: {where}: {first['msg']}, got {first['input']!r:.60}") from error
    except (ValueError, zlib.error) as error:
        raise InputError(f"{path}: {error}") from error
    return file


def read_caps(path: Path, tokenizer: Tokenizer) -> tuple[CapTable, OddsState | None]:
    """Caps and odds of a file; InputError for a broken one and for one made for other token ids.

    A role it lacks uses ``default``.
    """
    file = read_cap_file(path)
    if file.tokenizer != tokenizer.fingerprint:
        raise InputError(
            f"{path}: made for tokenizer {file.tokenizer}, the model has {tokenizer.fingerprint} ({tokenizer.name}): "
            "calibrate again"
        )
    return file.table(), file.odds_state()
