"""Results as read from JSON: numbers that may be absent, columns, rows pooled over traces."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

Row = Mapping[str, Any]

COUNTS = ("num_steps", "num_tokens", "num_drafts", "num_draft_tokens", "num_accepted_tokens")
ABSENT = "-"


def number(value: object) -> float | None:
    """``value`` where it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def numbers(value: object) -> list[float]:
    """``value`` where it is a list of finite numbers, else nothing."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return []
    found = [number(item) for item in value]
    return [item for item in found if item is not None] if None not in found else []


def texts(value: object) -> list[str]:
    """``value`` where it is a list, as texts, else nothing."""
    return [str(item) for item in value] if isinstance(value, list | tuple) else []


def mapping(value: object) -> Mapping[str, Any]:
    """``value`` where it is a mapping, else nothing."""
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}


def pair(value: object) -> tuple[float, float] | None:
    """``value`` where it is a [low, high] interval."""
    found = numbers(value)
    return (found[0], found[1]) if len(found) == 2 else None


def kind_of(result: Row) -> str:
    """``bench`` or ``simulate``."""
    if result.get("kind") in ("bench", "simulate"):
        return str(result["kind"])
    return "bench" if any("tokens_per_s" in row for row in rows_of(result)) else "simulate"


def rows_of(result: Row) -> list[Row]:
    """The rows of a result."""
    rows = result.get("rows")
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, Sequence) else []


def variant(row: Row, kind: str) -> float | str | None:
    """What tells a method's rows apart: the batch of a bench, the cost ratio or the cost's name of a simulation."""
    if kind == "bench":
        return number(row.get("batch"))
    named = row.get("cost")
    return named if isinstance(named, str) else number(row.get("cost_ratio"))


def variants(rows: Sequence[Row], kind: str) -> list[float | str]:
    """Each variant once: numbers ascending, then names in order."""
    found = distinct([value for row in rows if (value := variant(row, kind)) is not None])
    return sorted(v for v in found if not isinstance(v, str)) + [v for v in found if isinstance(v, str)]


def variant_word(rows: Sequence[Row], kind: str) -> str:
    """What a reader calls a variant."""
    if kind == "bench":
        return "batch"
    return "cost" if any(isinstance(value, str) for value in variants(rows, kind)) else "cost ratio"


def batch_words(rows: Sequence[Row]) -> str:
    """``batch 4`` where rows were replayed several at a time, else nothing."""
    batches = sorted({value for row in rows if (value := number(row.get("batch"))) is not None and value > 1})
    return f"batch {', '.join(map(plain, batches))}" if batches else ""


def method_of(row: Row) -> str:
    """The row's method."""
    return str(row.get("method", "?"))


def distinct(values: Sequence[Any]) -> list[Any]:
    """``values``, each once, in order."""
    return list(dict.fromkeys(values))


def plain(value: float | str | None) -> str:
    """A batch, a cost ratio or a cost's name, as given: ``16``, ``0.065``, ``h100-7b``."""
    return value if isinstance(value, str) else ABSENT if value is None else f"{value:g}"


def fixed(value: float | None, digits: int) -> str:
    """``1,234.50``."""
    return ABSENT if value is None else f"{value:,.{digits}f}"


def speed(value: float | None) -> str:
    """Tokens a second: three digits are enough."""
    return fixed(value, 0 if value is None or abs(value) >= 100 else 1)


def percent(value: float | None) -> str:
    """``0.512`` as ``51%``."""
    return ABSENT if value is None else f"{value:.0%}"


def span(value: tuple[float, float] | None, show: Callable[[float], str]) -> str:
    """An interval of values that are not negative: ``40.4-43.4``, one word, so that no table breaks it."""
    return ABSENT if value is None else f"{show(value[0])}-{show(value[1])}"


def per(row: Row, top: str, bottom: str) -> float | None:
    """The ratio of two counts of a row."""
    a, b = number(row.get(top)), number(row.get(bottom))
    return a / b if a is not None and b else None


def ratio(row: Row, key: str) -> float | None:
    """The median of a ratio to another method."""
    return number(mapping(row.get(key)).get("median"))


def _tape(row: Row) -> str:
    followed = row.get("tape_followed")
    return {True: "yes", False: "NO"}.get(followed, ABSENT) if isinstance(followed, bool) else ABSENT


@dataclass(frozen=True)
class Column:
    """A column: its head, how a row fills it, whether it holds text (left-aligned), whether only the page has it."""

    head: str
    cell: Callable[[Row], str]
    text: bool = False
    page_only: bool = False


def _name(head: str, key: str) -> Column:
    return Column(head, lambda row: str(row.get(key, ABSENT)), text=True)


def _ratio(name: str) -> tuple[Column, Column]:
    key = f"ratio_to_{name}"
    return (
        Column(f"x {name}", lambda row: fixed(ratio(row, key), 2)),
        Column(
            f"x {name}, 95% interval",
            lambda row: span(pair(mapping(row.get(key)).get("interval")), lambda value: fixed(value, 2)),
            page_only=True,
        ),
    )


_COMMON = (
    Column("mean acceptance length", lambda row: fixed(number(row.get("mean_acceptance_length")), 2)),
    Column("drafted a step", lambda row: fixed(per(row, "num_draft_tokens", "num_steps"), 2)),
    Column("accept rate", lambda row: percent(per(row, "num_accepted_tokens", "num_draft_tokens"))),
)

_BENCH = (
    _name("method", "method"),
    Column("batch", lambda row: plain(number(row.get("batch")))),
    Column("tokens/s", lambda row: speed(number(row.get("tokens_per_s")))),
    Column("95% interval", lambda row: span(pair(row.get("tokens_per_s_interval")), speed)),
    Column("end to end", lambda row: speed(number(row.get("end_to_end_tokens_per_s")))),
    *_ratio("none"),
    *_ratio("suffix"),
    *_ratio("async"),
    *_COMMON,
    Column("tape", _tape),
    Column("repeats", lambda row: plain(number(row.get("repeats"))), page_only=True),
)

_SIMULATE = (
    _name("trace", "trace"),
    _name("method", "method"),
    _name("cost", "cost"),
    Column("cost ratio", lambda row: plain(number(row.get("cost_ratio")))),
    Column("batch", lambda row: plain(number(row.get("batch")))),
    Column("rows a step", lambda row: fixed(number(row.get("mean_batch")), 2), page_only=True),
    *_COMMON,
    Column("accepted over foretold", lambda row: fixed(number(row.get("drift")), 2), page_only=True),
    Column("speedup", lambda row: fixed(number(row.get("speedup")), 2)),
    Column("propose p50 us", lambda row: fixed(number(mapping(row.get("propose_us")).get("p50")), 0)),
    Column("p99 us", lambda row: fixed(number(mapping(row.get("propose_us")).get("p99")), 0)),
)


def columns(kind: str, rows: Sequence[Row], *, page: bool) -> list[Column]:
    """The columns that some row fills (the method's always); those of the ``page`` too."""
    return [
        column
        for column in (_BENCH if kind == "bench" else _SIMULATE)
        if (page or not column.page_only)
        and (column.head == "method" or any(column.cell(row) != ABSENT for row in rows))
    ]


def pooled(rows: Sequence[Row], kind: str) -> list[Row]:
    """One row a method and variant (and batch), its traces' counts summed and its figures taken from the sums."""
    groups: dict[tuple[str, float | str | None, float | None], list[Row]] = {}
    for row in rows:
        groups.setdefault((method_of(row), variant(row, kind), number(row.get("batch"))), []).append(row)
    return [group[0] if len(group) == 1 else _pool(group) for group in groups.values()]


def _pool(group: Sequence[Row]) -> Row:
    row = {key: group[0][key] for key in ("method", "cost", "cost_ratio", "batch") if key in group[0]}
    for key in (*COUNTS, "model_time", "model_time_none"):
        values = [number(part.get(key)) for part in group]
        if None not in values:
            row[key] = sum(value for value in values if value is not None)
    row["mean_acceptance_length"] = per(row, "num_tokens", "num_steps")
    row["speedup"] = per(row, "model_time_none", "model_time")
    for key in ("accepted_at", "drafted_at"):
        lists = [numbers(part.get(key)) for part in group]
        row[key] = [sum(values) for values in zip_longest(*lists, fillvalue=0.0)]
    sources: dict[str, float] = {}
    for part in group:
        for store, value in by_store(part).items():
            sources[store] = sources.get(store, 0.0) + value
    row["by_source"] = {store: {"num_accepted_tokens": value} for store, value in sources.items()}
    return row


def by_store(row: Row) -> dict[str, float]:
    """Accepted tokens of each store."""
    found = {
        store: number(mapping(counts).get("num_accepted_tokens"))
        for store, counts in mapping(row.get("by_source")).items()
    }
    return {store: value for store, value in found.items() if value is not None}


def corpus_line(result: Row) -> tuple[str, bool] | None:
    """One line about the corpus that was used, and whether it is a warning; None without a corpus."""
    told = mapping(mapping(result.get("settings")).get("corpus_info"))
    if not told:
        return None
    sources, excluded, overlap = (texts(told.get(key)) for key in ("sources", "excluded", "overlap"))
    line = f"corpus: {fixed(number(told.get('num_tokens')), 0)} tokens of {_number_of(len(sources), 'source')}"
    line += f", {_number_of(len(excluded), 'session')} kept out of it"
    if not overlap:
        return f"{line}; none of the sessions evaluated is in it", False
    named = ", ".join(overlap[:3]) + (", ..." if len(overlap) > 3 else "")
    total = plain(number(told.get("num_evaluated")))
    return f"{line}. It HOLDS {len(overlap)} of the {total} sessions evaluated: {named} (--exclude-session)", True


def _number_of(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
