"""What is switched off, one at a time: the one place to name new switches in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agspec.draft.names import PART_NAMES
from agspec.settings import Settings
from benchmarks.table.families import Change

STORES: tuple[str, ...] = Settings.model_fields["stores"].default


def without(store: str) -> dict[str, Any]:
    """Settings with every store but one."""
    return {"stores": tuple(name for name in STORES if name != store)}


def unused(part: str) -> dict[str, Any]:
    """Settings with every part of the policy but one."""
    return {"parts": tuple(name for name in PART_NAMES if name != part)}


@dataclass(frozen=True)
class Ablation:
    """``values``: settings that differ."""

    values: dict[str, Any]
    change: Change | None = None
    trained: bool = True


ABLATIONS: dict[str, Ablation] = {
    "no session store": Ablation(without("session")),
    "no workspace": Ablation(without("workspace")),
    "no shared": Ablation(without("shared")),
    "emission forms off": Ablation({}, change="raw form only"),
    "calibration off": Ablation({}, trained=False),
    "multiplier off": Ablation(unused("multiplier")),
    "regions off": Ablation(unused("regions")),
    "aligned off": Ablation(unused("aligned")),
    "one role": Ablation({}, change="one role"),
}
ABLATION_RATIOS = (0.065, 0.27)


@dataclass(frozen=True)
class View:
    """One table: agspec with these settings, and whether every method has seen the training half."""

    title: str
    values: dict[str, Any]
    change: Change | None = None
    warm: bool = False


VIEWS: dict[str, View] = {
    "cold": View("All methods cold", {}),
    "warm": View("All methods warm: each has replayed the training half", {}, warm=True),
    "no-repository": View("No repository: agspec without its workspace store", without("workspace")),
    "one-role": View("One role for everything", {}, change="one role"),
}
