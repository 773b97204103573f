"""Which replays a table needs, and the table made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.table.ablations import ABLATION_RATIOS, ABLATIONS, VIEWS, View
from benchmarks.table.counts import BySession, Counts, total
from benchmarks.table.families import Family
from benchmarks.table.jobs import Job, Replay, Sweep
from benchmarks.table.score import Measured
from benchmarks.table.tune import DEFAULTS, GRIDS, choose, text_of, told

RATIOS = (0.03, 0.065, 0.27, 0.4)
OURS = ("agspec-suffix", "agspec")
METHODS = (
    "none", "ngram", "ngram tuned", "suffix", "suffix tuned", "sam tuned", "rest tuned", *OURS, "oracle",
)  # fmt: skip
"""A table's columns; ``oracle``, the bound: the best of agspec's candidates, drafted as far as it is right."""
ORACLE, ANY = "oracle", 0.03
"""It is replayed once: no cost ratio makes a difference to it."""
FULL = "agspec"


@dataclass
class Results:
    """Families and the counts of finished jobs."""

    families: Sequence[Family]
    counts: dict[Job, list[BySession]] = field(default_factory=dict)
    chosen: dict[tuple[str, str, float, int], str] = field(default_factory=dict)

    def view(self, view: View) -> list[Measured]:
        """Every setting of one table."""
        return [self._setting(view, family, ratio) for family in self.families for ratio in RATIOS]

    def ablations(self) -> list[dict[str, Any]]:
        """A row for each switch, family and ratio: what agspec is worth over itself without it."""
        found = []
        for name, ablation in ABLATIONS.items():
            for family in self.families:
                for ratio in ABLATION_RATIOS:
                    off = View(name, ablation.values, ablation.change)
                    counts = {
                        FULL: self._ours(FULL, VIEWS["cold"], family, ratio, True),
                        "off": self._ours(FULL, off, family, ratio, ablation.trained),
                    }
                    measured = Measured(family.name, family.base, ratio, family.in_mean, counts)
                    row = {"name": name, "family": family.name, "ratio": ratio, "in_mean": family.in_mean}
                    found.append({**row, "worth": round(measured.gain(FULL, "off"), 4)})
        return found

    def _setting(self, view: View, family: Family, ratio: float) -> Measured:
        counts: dict[str, BySession] = {"none": {}}
        for call in family.calls:
            tokens = int(call.tape.size)
            counts["none"][call.session] = _plus(counts["none"].get(call.session), (tokens, tokens, 0, 0))
        for method in GRIDS:
            if method in METHODS:
                counts[method] = self._baseline(method, view, family, None)
            counts[f"{method} tuned"] = self._baseline(method, view, family, ratio)
        for method in OURS:
            counts[method] = self._ours(method, view, family, ratio, True)
        counts[ORACLE] = self._ours(ORACLE, view, family, ANY, False)
        return Measured(family.name, family.base, ratio, family.in_mean, counts)

    def _ours(self, method: str, view: View, family: Family, ratio: float, trained: bool) -> BySession:
        halves = [self.counts[ours(method, view, family.name, half, ratio, trained)][0] for half in (0, 1)]
        return halves[0] | halves[1]

    def _baseline(self, method: str, view: View, family: Family, ratio: float | None) -> BySession:
        """A baseline's counts; at a ratio with the setting that was fastest there on the other half, replayed cold."""
        grid = GRIDS[method]
        found: BySession = {}
        for half in (0, 1):
            values: Mapping[str, float] = DEFAULTS[method]
            if ratio is not None:
                values = choose(grid, self._swept(method, family, 1 - half), family.sessions[1 - half :: 2], ratio)
                self.chosen[family.name, method, ratio, half] = told(values)
            measured = self._swept(method, family, 1 - half if view.warm else half)[grid.index(dict(values))]
            found |= {session: measured[session] for session in family.sessions[half::2] if session in measured}
        return found

    def _swept(self, method: str, family: Family, first: int) -> list[BySession]:
        by_text = {job.text: iter(self.counts[job]) for job in sweeps(family.name, method, first)}
        return [next(by_text[text_of(method, values)]) for values in GRIDS[method]]


def _plus(a: Counts | None, b: Counts) -> Counts:
    return total([a, b]) if a else b


def sweeps(family: str, method: str, first: int) -> list[Sweep]:
    """The sweeps that try a baseline's whole grid: half ``first`` cold, the other one warm."""
    texts = dict.fromkeys(text_of(method, values) for values in GRIDS[method])
    return [Sweep(family, method, text, first) for text in texts]


def ours(method: str, view: View, family: str, half: int, ratio: float, trained: bool) -> Replay:
    """agspec's replay of half a family."""
    values = tuple(sorted({**view.values, "cost_ratio": ratio}.items()))
    return Replay(family, half, method, values, view.change, view.warm, trained)


def jobs(families: Sequence[str], views: Sequence[str], *, ablated: bool) -> list[Job]:
    """All replays that these tables need, family by family."""
    found: list[Job] = []
    for family in families:
        for half in (0, 1):
            for method in GRIDS:
                found += sweeps(family, method, half)
            for view in (VIEWS[name] for name in views):
                found += [ours(m, view, family, half, ratio, True) for ratio in RATIOS for m in OURS]
                found.append(ours(ORACLE, view, family, half, ANY, False))
            for name, ablation in ABLATIONS.items() if ablated else ():
                off = View(name, ablation.values, ablation.change)
                found += [ours(FULL, off, family, half, r, ablation.trained) for r in ABLATION_RATIOS]
                found += [ours(FULL, VIEWS["cold"], family, half, r, True) for r in ABLATION_RATIOS]
    return list(dict.fromkeys(found))
