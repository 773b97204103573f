"""What ``agspec serve`` tells the API server processes, through one environment variable."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agspec.errors import SettingsError

VARIABLE = "AGSPEC_SERVE"
"""A JSON object of ServeConfig's fields."""


ALIAS = "+copy"
"""After a served model's name: answers to it are written as programs of copies, with copy_edits."""


class ServeConfig(BaseModel):
    """How requests are read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scaffold: str = Field("auto", description="profile of every request; auto: told from each")
    profiles: tuple[Path, ...] = Field((), description="folders of further profiles")
    tool_wire: Literal["auto", "json", "raw"] = Field("auto", description="how the model writes tool arguments")
    share_tenants: bool = Field(False, description="one store for all API keys and tenant headers")
    workspace: Path | None = Field(None, description="the agents' working copy, a git repository this server can read")
    record: Path | None = Field(None, description="trace file that what is served is appended to")
    redact: tuple[str, ...] = Field((), description="regular expressions of secrets that records leave out")
    copy_edits: bool = Field(False, description="serve /v1/edits: files rewritten as copy programs")
    copy_anchors: int = Field(1, ge=1, description="lines of a shown file of which one has its number, with copy_edits")
    fim_family: str | None = Field(
        None, description="model family of completions, or its TOML file; None: told from tokens"
    )
    fim_order: Literal["psm", "spm"] | None = Field(
        None, description="what comes first in a prompt; None: the family's"
    )
    playground: Path | None = Field(None, description="the built page that is served at /playground")
    session_minutes: float = Field(240, gt=0, description="unused that long, a session is over")

    def to_environment(self) -> dict[str, str]:
        """The variable that hands these to every API server process."""
        return {VARIABLE: self.model_dump_json(exclude_defaults=True)}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> ServeConfig:
        """What is in force here; SettingsError in one line."""
        try:
            return cls.model_validate_json(environment.get(VARIABLE, "").strip() or "{}")
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or VARIABLE
            raise SettingsError(f"{VARIABLE}: {where}: {first['msg']}, got {first['input']!r:.60}") from error


RAW_PARSERS = ("qwen3", "glm", "minimax", "step3", "seed_oss", "xml")
"""Beginnings of the names of vLLM's tool parsers whose models write arguments as bare text between tags."""


def tool_wire_of(parser: str | None) -> Literal["json", "raw"]:
    """How a model served with this ``--tool-call-parser`` writes a tool's arguments.

    >>> tool_wire_of("qwen3_coder"), tool_wire_of("hermes"), tool_wire_of(None)
    ('raw', 'json', 'json')
    """
    return "raw" if parser is not None and parser.startswith(RAW_PARSERS) else "json"
