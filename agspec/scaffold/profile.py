"""The schema of a scaffold profile (scaffolds/<agent>.toml) and its reading.

A profile says how an agent is told by its marker texts (``match``), how a file looks in its prompts
(``reads``), how its edits are written (``emits``), what in its outputs tells what is being written (``regions``),
what it does to its history and where it names its session. Data only: no profile brings code.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from agspec.draft.emission import Form
from agspec.draft.names import REGION_NAMES, RegionName
from agspec.errors import InputError
from agspec.messages import Role

Where = Literal["system", "user", "tool", "header"]
"""Where a marker stands: a system message, the first user message, a tool's name, a ``name: value`` header."""
MessageRole = Literal["system", "user", "assistant", "tool"]
ToolWire = Literal["json", "raw"]
"""How the served model writes a tool's arguments: a JSON string, or bare text between tags."""


def _regex(source: object) -> object:
    if not isinstance(source, str):
        return source
    try:
        return re.compile(source, re.MULTILINE)
    except re.error as error:
        raise ValueError(f"want a regular expression ({error})") from None


def _form(source: object) -> object:
    return Form.named(source) if isinstance(source, str) else source


Regex = Annotated[re.Pattern[str], BeforeValidator(_regex)]
FormName = Annotated[Form, BeforeValidator(_form)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Marker(_Table):
    """A literal text that tells the agent, and with ``role`` the agent's role.

    ``regex``, if any, must match at the start of the line on which the text was found. A tool marker
    is the tool's whole name; a header marker begins a line ``name: value`` (name in lower case).
    """

    where: Where
    text: str = Field(min_length=1)
    role: Role | None = None
    regex: Regex | None = None
    priority: int = 0


class Read(_Table):
    """How an opened text looks in a message.

    ``begin`` is tried at the start of each line that holds one of ``literal``, or only at the start
    of the message where ``literal`` is empty. Its group ``path`` names the file, ``total`` its number
    of lines, and ``part``, where it caught something, says that this is not the whole file.

    The text then runs to the line that ``end`` matches: ``{name}`` in it stands for what group
    ``name`` of ``begin`` caught, and what its group ``rest`` catches is still text. With a
    ``line_prefix`` it also ends at the first line that has neither the prefix nor ``skip``.
    """

    where: tuple[MessageRole, ...] = Field(min_length=1)
    needs: tuple[str, ...] = ()
    """The message must hold one of these."""
    lacks: tuple[str, ...] = ()
    """The message must hold none of these."""
    literal: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    begin: Regex
    line_prefix: Literal["auto"] | Regex | None = None
    """Removed from every line; ``auto``: whatever numbering most lines carry."""
    skip: Regex | None = None
    """Lines the display put between those of the file."""
    end: str | None = None
    clipped: str | None = None
    """Where the text holds this, the display cut it there."""
    decode: Literal["none", "json", "json_html"] = "none"
    tabs: Literal["kept", "expanded"] = "kept"
    last_newline: Literal["text", "display"] = "text"
    """Whose the newline before the end is: the file's, or the display's."""
    whole: bool = True
    """Whether it may be the whole file."""
    min_lines: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _end_compiles(self) -> Read:
        if self.end is not None:
            _regex(self.end_source(dict.fromkeys(self.begin.groupindex, "x")))
        return self

    def end_source(self, groups: dict[str, str]) -> str:
        """``end`` with what ``begin`` caught put in."""
        source = self.end or ""
        for name, text in groups.items():
            source = source.replace("{" + name + "}", re.escape(text))
        return source


class Emit(_Table):
    """One edit format: ``forms`` is how it carries a file's text, ``encode`` who writes it.

    ``raw`` is free text; ``tool_arg`` is a tool's argument, so the model's tool wire decides. With
    ``when`` the format is in use only where that marker is found.
    """

    kind: Literal["search_replace", "whole", "udiff", "v4a", "arg", "shell"]
    forms: tuple[FormName, ...] = Field(min_length=1)
    encode: Literal["raw", "tool_arg"]
    when: Marker | None = None

    def forms_on(self, wire: ToolWire) -> list[Form]:
        """The forms on a model whose tool wire is ``wire``."""
        encode: Literal["none", "json"] = "json" if self.encode == "tool_arg" and wire == "json" else "none"
        return [Form(form.line_prefix, encode, form.newline, form.tabs) for form in self.forms]


class RegionMark(_Table):
    """A text the model writes that begins another region of its output; only ``within`` some regions, if any given."""

    text: str = Field(min_length=1)
    to: RegionName
    within: tuple[RegionName, ...] = REGION_NAMES


class Session(_Table):
    """Header and body fields that name the session; empty where the agent sends none."""

    headers: tuple[str, ...] = ()
    body: tuple[str, ...] = ()


class Profile(_Table):
    """One scaffolds/<agent>.toml."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    description: str
    role: Role = "coder"
    """The role where a marker tells the agent but none tells the role."""
    history: Literal["append_only", "file_block_moves", "middle_elided", "condensed"]
    session: Session = Session()
    match: tuple[Marker, ...] = ()
    reads: tuple[Read, ...] = ()
    emits: tuple[Emit, ...] = Field(min_length=1)
    regions: tuple[RegionMark, ...] = ()


def read_profile(path: Path) -> Profile:
    """Read one profile; InputError names file, field, what was wanted and what came."""
    try:
        raw: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: want a readable profile, got: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: want TOML, got: {error}") from error
    try:
        return Profile.model_validate(raw)
    except ValidationError as error:
        raise InputError(f"{path}: {_first(error)}") from error


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"{where}: want only known keys, got this one"
    if first["type"] == "missing":
        return f"{where}: want this key, got none"
    wanted = first["msg"].removeprefix("Value error, ").replace("Input should be ", "want ")
    return f"{where}: {wanted}, got {str(first['input'])[:60]!r}"
