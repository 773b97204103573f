"""Counts priced: speedups of a setting, gains over settings, and how sure they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from benchmarks.table.counts import BySession, speedup, total

DRAWS = 1000
SEED = 20_26
LEVEL = (2.5, 97.5)
"""Percentiles of an interval."""


@dataclass(frozen=True)
class Measured:
    """One setting: a family at a cost ratio, counts by method and session.

    ``base``: name of its sessions; families of the same sessions are resampled alike.
    """

    family: str
    base: str
    ratio: float
    in_mean: bool
    counts: Mapping[str, BySession]

    def speedup(self, method: str) -> float:
        """Over one token a step."""
        return speedup(total(self.counts[method].values()), self.ratio)

    def drawn(self, method: str) -> npt.NDArray[np.float64]:
        """Speedups over DRAWS resamplings of the sessions, float64 [DRAWS]; the same sessions for each method."""
        sessions = sorted(self.counts[method])
        rng = np.random.default_rng([SEED, crc32(self.base.encode())])
        picked = rng.integers(len(sessions), size=(DRAWS, len(sessions)))
        steps, tokens, drafted, _ = np.asarray([self.counts[method][s] for s in sessions], float)[picked].sum(1).T
        return np.asarray(tokens * (1 + self.ratio) / (steps * (1 + self.ratio) + self.ratio * drafted))

    def gain(self, method: str, over: str) -> float:
        """How much faster ``method`` is than ``over``, 0.1 for a tenth."""
        return self.speedup(method) / self.speedup(over) - 1

    def gains(self, method: str, over: str) -> npt.NDArray[np.float64]:
        """``gain`` over the resamplings."""
        return self.drawn(method) / self.drawn(over) - 1


def interval(values: npt.NDArray[np.float64]) -> list[float]:
    """Lower and upper end."""
    low, high = np.percentile(values, LEVEL)
    return [round(float(low), 4), round(float(high), 4)]


def compare(settings: Iterable[Measured], method: str, over: str) -> dict[str, Any]:
    """Mean gain over the settings that count, its interval, the worst setting, and in how many it is a gain."""
    kept = [setting for setting in settings if setting.in_mean]
    gains = [setting.gain(method, over) for setting in kept]
    worst = int(np.argmin(gains))
    return {
        "method": method,
        "over": over,
        "mean": round(float(np.mean(gains)), 4),
        "interval": interval(np.mean([setting.gains(method, over) for setting in kept], axis=0)),
        "worst": round(gains[worst], 4),
        "worst_setting": f"{kept[worst].family} at {kept[worst].ratio:g}",
        "num_settings": len(kept),
        "num_faster": sum(gain > 0 for gain in gains),
    }


def rows(settings: Sequence[Measured], methods: Sequence[str]) -> list[dict[str, Any]]:
    """A row a setting."""
    found = []
    for setting in settings:
        sums = {method: total(setting.counts[method].values()) for method in methods}
        found.append(
            {
                "family": setting.family,
                "ratio": setting.ratio,
                "in_mean": setting.in_mean,
                "speedup": {method: round(setting.speedup(method), 4) for method in methods},
                "tokens_a_step": {method: round(sums[method][1] / sums[method][0], 4) for method in methods},
                "drafted_a_step": {method: round(sums[method][2] / sums[method][0], 4) for method in methods},
                "agspec_over_suffix": round(setting.gain("agspec", "suffix"), 4),
                "interval": interval(setting.gains("agspec", "suffix")),
            }
        )
    return found
