"""What a step costs, as a report names it and as the methods are told it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agspec.costfile import read_cost
from agspec.draft.cost import StepCost
from agspec.settings import Settings


@dataclass(frozen=True)
class NamedCost:
    """A cost model and where it comes from: a bare ``ratio``, or a ``profile`` (a file, or a shipped one's name)."""

    steps: StepCost
    ratio: float | None = None
    profile: Path | None = None

    @classmethod
    def of_ratio(cls, ratio: float) -> NamedCost:
        """``ratio``: cost of one more verified token over a step's fixed cost."""
        return cls(StepCost.from_ratio(ratio), ratio=ratio)

    @classmethod
    def of_profile(cls, profile: str | Path) -> NamedCost:
        """A cost profile, times in ms; raises InputError."""
        return cls(read_cost(profile), profile=Path(profile))

    @property
    def names(self) -> dict[str, float | str]:
        """``{"cost": the profile's name}`` or ``{"cost_ratio": the ratio}``, for a report's row."""
        if self.profile is not None:
            return {"cost": self.profile.name.removesuffix(".json")}
        return {} if self.ratio is None else {"cost_ratio": self.ratio}

    def tell(self, settings: Settings) -> Settings:
        """``settings`` with this cost in the place of theirs."""
        return settings.model_copy(update={"cost": self.profile, "cost_ratio": self.ratio})
