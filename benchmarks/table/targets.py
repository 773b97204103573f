"""What the table is to reach, and whether it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COMPARISONS = (
    ("agspec", "suffix"),
    ("agspec", "suffix tuned"),
    ("agspec-suffix", "suffix"),
    ("agspec-suffix", "suffix tuned"),
    ("agspec", "sam tuned"),
    ("agspec", "ngram tuned"),
    ("agspec", "rest tuned"),
    ("oracle", "agspec"),
)
"""Method and what it is set against, of each table."""


@dataclass(frozen=True)
class Target:
    """A figure of a comparison in one view: ``want`` is the least that will do, None where none was set."""

    view: str
    method: str
    over: str
    figure: str
    want: float | None = None

    @property
    def text(self) -> str:
        """In words."""
        words = {
            "mean": "mean gain over the settings",
            "worst": "gain in the worst setting",
            "num_faster": "settings in which it is faster",
            "num_settings": "settings",
        }
        return f"{self.view}: {self.method} over {self.over}, {words[self.figure]}"


TARGETS = (
    Target("cold", "agspec", "suffix", "num_settings", 12),
    Target("cold", "agspec", "suffix", "mean", 0.10),
    Target("cold", "agspec", "suffix", "worst"),
    Target("cold", "agspec", "suffix", "num_faster"),
    Target("cold", "agspec", "suffix tuned", "mean", 0.07),
    Target("cold", "agspec", "suffix tuned", "worst", -0.01),
    Target("cold", "agspec-suffix", "suffix", "mean", 0.06),
    Target("cold", "agspec", "sam tuned", "mean", 0.40),
    Target("no-repository", "agspec", "suffix", "mean"),
    Target("one-role", "agspec", "suffix", "mean"),
    Target("warm", "agspec", "suffix", "mean"),
    Target("warm", "agspec", "suffix tuned", "mean"),
)
"""Gains are fractions: 0.1 is a tenth."""

NOT_HAD = {
    "Token Recycling": "needs the model's top candidates at each step, which recorded text does not have",
    "LogitSpec": "needs the model's logits at each step, which recorded text does not have",
    "EAGLE, a learned draft": "no draft weights, and no hidden states in recorded text to run them on",
}
"""Methods that are not in the table, and why. REST is: it needs text alone."""


def reached(comparisons: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Each target whose view was measured: ``{"text", "want", "reached", "met"}``; met is None where none was set."""
    found = []
    for target in TARGETS:
        for compared in comparisons.get(target.view, ()):
            if (compared["method"], compared["over"]) == (target.method, target.over):
                value = compared[target.figure]
                met = None if target.want is None else value >= target.want
                is_gain = target.figure in ("mean", "worst")
                found.append(
                    {"text": target.text, "want": target.want, "reached": value, "met": met, "is_gain": is_gain}
                )
    return found
