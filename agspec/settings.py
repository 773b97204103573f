"""Settings: TOML or flags -> one frozen object; unknown keys are errors."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from agspec.draft.names import PART_NAMES, PartName, StoreName
from agspec.errors import SettingsError

LookupName = Literal["sam", "suffix-tree"]
_BOTH: Final = "cost_and_ratio"


class Settings(BaseModel):
    """What a run uses; a report prints it whole."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lookup: LookupName = Field("sam", description="engine behind the stores")
    stores: tuple[StoreName, ...] = Field(
        ("session", "workspace", "shared", "corpus"), description="stores that are looked up"
    )
    parts: tuple[PartName, ...] = Field(PART_NAMES, description="parts of the policy in use")
    cost_ratio: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="cost of one more verified token over a step's fixed cost"
    )
    cost: Path | None = Field(None, description="cost profile: file or shipped name, see: agspec profile")
    caps: Path | None = Field(None, description="CapTable file; the default policy where none is given")
    corpus: Path | None = Field(None, description="frozen corpus folder, see: agspec corpus build")
    max_draft: int = Field(48, ge=1, le=128, description="longest draft; vLLM allows 128")
    session_mib: int = Field(64, ge=1, description="budget of one session's store")
    workspace_mib: int = Field(256, ge=1, description="budget of one tenant's workspace store")
    shared_mib: int = Field(512, ge=1, description="budget of one tenant's live global store")
    tokens_per_step: int = Field(768, ge=64, description="tokens that go into stores in one step")
    max_sessions: int = Field(128, ge=1, description="sessions kept, the longest unused go first")
    max_tenants: int = Field(16, ge=1, description="tenants kept, the longest unused go first")
    threads: int = Field(2, ge=1, description="threads that look up for a batch's rows")
    state: Path | None = Field(None, description="folder that keeps the tenants' live global stores between runs")
    log_drafts: bool = Field(False, description="keep every draft, for tests")
    strict: bool = Field(False, description="let the proposer raise, for tests; else an error costs one draft")

    ngram_min: int = Field(2, ge=1, description="baseline ngram: shortest match")
    ngram_max: int = Field(5, ge=1, description="baseline ngram: longest match")
    ngram_length: int = Field(5, ge=1, description="baseline ngram: tokens drafted")
    suffix_depth: int = Field(24, ge=1, description="baseline suffix: tree depth and longest draft (vLLM's default)")
    suffix_factor: float = Field(
        1.0, gt=0, description="baseline suffix: draft length a matched token (vLLM's default)"
    )
    suffix_min_prob: float = Field(0.1, gt=0, description="baseline suffix: least probability (vLLM's default)")
    suffix_cached_requests: int = Field(10_000, description="baseline suffix: responses kept (vLLM's default)")
    sam_length: int = Field(40, ge=1, description="baseline sam: tokens drafted")

    @model_validator(mode="after")
    def _one_cost(self) -> Settings:
        if self.cost is not None and self.cost_ratio is not None:
            raise PydanticCustomError(_BOTH, "want cost or cost_ratio, got both")
        return self

    def with_lookup(self, lookup: LookupName) -> Settings:
        """The same settings over another lookup engine."""
        return self.model_copy(update={"lookup": lookup})


def make_settings(values: dict[str, Any], *, where: str) -> Settings:
    """Settings from plain values; raises SettingsError with key, reason and ``where``."""
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "settings"
        got = f", got {first['input']!r:.60}" if first["type"] not in ("extra_forbidden", _BOTH) else ""
        known = f"; known: {', '.join(Settings.model_fields)}" if first["type"] == "extra_forbidden" else ""
        raise SettingsError(f"{where}: {key}: {first['msg']}{got}{known}") from error


def read_settings(path: str | Path) -> Settings:
    """Settings from a TOML file; raises SettingsError in one line."""
    try:
        values = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: want a settings file, got: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: want TOML, got: {error}") from error
    return make_settings(values, where=str(path))
