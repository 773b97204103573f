"""The family of a model, as it is asked for or as its tokenizer tells it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agspec.errors import InputError
from agspec.fim.families import Family, detect, family_of


def family_from(told: str | None, tokenizer_spec: Mapping[str, Any], model: str) -> Family:
    """The family of that name, or in a TOML file with a family's fields; None: told from the tokenizer's tokens."""
    if told is None:
        added = {str(token["content"]) for token in tokenizer_spec.get("added_tokens", [])}
        return detect(added, model=model)
    if not told.endswith(".toml"):
        return family_of(told)
    try:
        return Family.model_validate(tomllib.loads(Path(told).read_text("utf-8")))
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise InputError(f"{told}: want a model family's fields, got: {str(error).splitlines()[0]}") from error
