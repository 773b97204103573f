"""CapTable files: JSON, checked against the tokenizer they were made for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agspec.draft.caps import MAX_DRAFT, CapTable, Limits
from agspec.errors import InputError
from agspec.messages import Role
from agspec.tokens import Tokenizer


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    cap: int = Field(ge=0, le=MAX_DRAFT)
    factor: float = Field(Limits.factor, ge=0)
    offset: int = Field(Limits.offset, ge=0)
    floor: float | None = Field(None, gt=0, lt=1)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    agspec_caps: Literal[1]
    tokenizer: str
    default: _Row
    roles: dict[Role, _Row] = Field(default_factory=dict)


def read_caps(path: Path, tokenizer: Tokenizer) -> CapTable:
    """``{"agspec_caps": 1, "tokenizer": fingerprint, "default": {"cap", "factor", "offset", "floor"}, "roles": {}}``.

    Raises InputError for a broken file and for one made for other token ids; a role it lacks uses ``default``.
    """
    try:
        file = _File.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: want a caps file, got: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "file"
        raise InputError(f"{path}: {where}: {first['msg']}, got {first['input']!r:.60}") from error
    if file.tokenizer != tokenizer.fingerprint:
        raise InputError(f"{path}: made for tokenizer {file.tokenizer}, the model has {tokenizer.fingerprint}")
    rows: dict[str, Limits] = {role: Limits(**row.model_dump()) for role, row in file.roles.items()}
    return CapTable(Limits(**file.default.model_dump()), rows)
