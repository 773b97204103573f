"""Charts as data: bars, columns and dots with their labels, and the table behind each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A stretch of a bar: its style, its length in the chart's unit, a word on it."""

    style: str
    length: float
    text: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Bar:
    """A horizontal bar: ``label`` and ``shown`` stand above it, ``interval`` is drawn on it."""

    label: str
    shown: str
    parts: tuple[Part, ...]
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Bars:
    """Bars on one scale from 0 to ``top``; ``mark``: a value all are to be held against."""

    title: str
    bars: tuple[Bar, ...]
    top: float
    mark: float | None = None


@dataclass(frozen=True)
class Columns:
    """Shares from 0 to 1 by position, 1 the first; None where nothing was drafted.

    ``end``: a line after that many positions, with ``end_text`` on it.
    """

    title: str
    shares: tuple[float | None, ...]
    hints: tuple[str, ...]
    styles: tuple[str, ...]
    end: int | None = None
    end_text: str = ""

    @property
    def slots(self) -> int:
        """Positions there must be room for."""
        return max(len(self.shares), self.end or 0)


@dataclass(frozen=True)
class Dot:
    """What was foretold, what came (both 0 to 1), how far that may be off, and how much of all it stands for."""

    x: float
    y: float
    error: float
    weight: float
    hint: str


@dataclass(frozen=True)
class Dots:
    """Dots against the diagonal, where all would lie that came as foretold."""

    title: str
    dots: tuple[Dot, ...]


Panel = Bars | Columns | Dots


@dataclass(frozen=True)
class Chart:
    """A chart: its panels, the words under its title, its legend (style, name), the table behind it."""

    title: str
    note: str
    panels: tuple[Panel, ...]
    heads: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    legend: tuple[tuple[str, str], ...] = ()
    num_text: int = 1
