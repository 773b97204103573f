"""Model families and the layout of their fill-in-the-middle prompts: data in families.toml, told by added tokens."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Sequence
from functools import cache
from importlib import resources
from typing import Literal

from pydantic import BaseModel, ConfigDict

from agspec.errors import InputError

Order = Literal["psm", "spm"]
"""What comes first in a prompt: the text before the cursor, or the text after it."""
ORDERS: tuple[Order, ...] = ("psm", "spm")
Marker = str | tuple[str, ...]


class Files(BaseModel):
    """How other files stand before the prompt: ``head`` once, ``file`` each, then ``own`` for the file at hand.

    ``inside``: what stands in the prompt's {own}, where the file's path goes within it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    head: str
    file: str
    own: str
    inside: str = ""


class Family(BaseModel):
    """A family; see the head of families.toml for the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    orders: tuple[Order, ...]
    markers: tuple[Marker, ...]
    psm: str | None = None
    spm: str | None = None
    files: Files | None = None
    headers: str | None = None
    stops: tuple[Marker, ...]
    needs: tuple[Marker, ...]
    lacks: tuple[str, ...] = ()
    names: tuple[str, ...]
    bos: bool | None = None
    sentencepiece: bool = False
    textual: bool = False
    source: str
    confidence: Literal["A", "B", "C"]

    def layout(self, order: Order) -> str:
        """The prompt's template; raises InputError for an order that the family was not trained on."""
        found = self.psm if order == "psm" else self.spm
        if found is None or order not in self.orders:
            raise InputError(f"order: want {' or '.join(self.orders)} with {self.name}, got {order}")
        return found

    def fits(self, added: Collection[str]) -> bool:
        """Whether a tokenizer with these added tokens may be one of this family."""
        return (
            bool(self.needs)
            and all(any(name in added for name in names_of(need)) for need in self.needs)
            and not any(name in added for name in self.lacks)
        )


def names_of(marker: Marker) -> tuple[str, ...]:
    """The names a marker goes by, the usual one first."""
    return (marker,) if isinstance(marker, str) else marker


@cache
def families() -> tuple[Family, ...]:
    """All of them."""
    text = resources.files(__package__).joinpath("families.toml").read_text("utf-8")
    return tuple(Family.model_validate(table) for table in tomllib.loads(text).values())


def family_of(name: str) -> Family:
    """The family of that name; InputError lists the known ones."""
    for family in families():
        if family.name == name:
            return family
    raise InputError(f"family: want one of {', '.join(family.name for family in families())}, got {name}")


def detect(added: Collection[str], *, model: str = "") -> Family:
    """The family of a tokenizer with the added tokens ``added``; ``model``, a name, breaks ties only.

    A more telling family, one that needs more tokens, goes before another. Raises InputError where none fits: no prompt
    is guessed.
    """
    fitting = [family for family in families() if family.fits(added)]
    if not fitting:
        told = ", ".join(sorted(name for name in added if "fim" in name.lower())[:5]) or "no fill-in-the-middle tokens"
        raise InputError(
            f"{model or 'tokenizer'}: want the added tokens of a known family, found {told}; name one with --family"
        )
    named = [family for family in fitting if _named(family, model)]
    return max(named or fitting, key=lambda family: len(family.needs))


def _named(family: Family, model: str) -> bool:
    return any(part in model.lower() for part in family.names)


def markers_of(found: Sequence[Marker], added: Collection[str] | None) -> tuple[str, ...]:
    """By the names that a tokenizer uses; the usual ones where ``added`` is None. Those it lacks are left out."""
    if added is None:
        return tuple(names_of(marker)[0] for marker in found)
    return tuple(name for marker in found for name in names_of(marker) if name in added)
