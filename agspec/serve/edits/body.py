"""What a request to /v1/edits says, and what is answered."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from agspec.serve.bodies import BadRequest

Way = Literal["copy", "whole"]


class File(BaseModel):
    """A file and its text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(min_length=1)
    text: str

    @field_validator("path", "text")
    @classmethod
    def _unicode(cls, value: str) -> str:
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"want text of whole characters, got half of one at {error.start}") from error
        return value


class EditBody(BaseModel):
    """``max_tokens``: decoded for one file at most; None: as many as its text has, and some."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1)
    instruction: str = Field(min_length=1)
    files: tuple[File, ...] = Field(min_length=1)
    edit: Literal["copy", "whole", "auto"] = "auto"
    stream: bool = False
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float = Field(default=0.0, ge=0, le=2)
    n: Literal[1] = 1

    @model_validator(mode="after")
    def _check(self) -> EditBody:
        paths = [file.path for file in self.files]
        if len(set(paths)) < len(paths):
            raise ValueError("want each path once")
        return self


def read_body(body: Any) -> EditBody:
    """A request's JSON; raises BadRequest with the field and what was wanted."""
    try:
        return EditBody.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "files"
        told = ascii(first["input"])
        raise BadRequest(where, f"{first['msg'].lower()}, got {told:.60}") from error


class Counts(BaseModel):
    """``copied_tokens``: of copied text; ``generated_tokens``: of the program, decoded one by one or drafted.

    ``decode_steps``: engine steps that brought tokens; ``forwards``: these and one a copy; ``steps_saved``: against one
    step for each token of the result.
    """

    copied_tokens: int = 0
    generated_tokens: int = 0
    decode_steps: int = 0
    forwards: int = 0
    steps_saved: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: value + getattr(other, name) for name, value in self})


class EditedFile(BaseModel):
    """The result for one file."""

    path: str
    edit: Way
    text: str
    program: str
    counts: Counts


class Edited(BaseModel):
    """The answer."""

    object: Literal["edit"] = "edit"
    model: str
    files: tuple[EditedFile, ...]
    counts: Counts
