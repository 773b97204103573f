"""Which charts a result's rows allow, as data."""

from __future__ import annotations

from collections.abc import Sequence

from agspec.draft.names import SOURCE_NAMES
from agspec.replay.report.rows import (
    Row,
    batch_words,
    by_store,
    distinct,
    fixed,
    kind_of,
    method_of,
    number,
    numbers,
    pair,
    percent,
    plain,
    pooled,
    ratio,
    rows_of,
    span,
    speed,
    variant,
    variant_word,
    variants,
)
from agspec.replay.report.shapes import Bar, Bars, Chart, Columns, Part


def charts(result: Row) -> list[Chart]:
    """The charts whose data ``result`` has."""
    kind, rows = kind_of(result), rows_of(result)
    found = [
        *_length(kind, rows),
        _speed(rows) if kind == "bench" else _speedup(rows),
        _stores(kind, rows),
        _positions(kind, rows),
    ]
    return [chart for chart in found if chart is not None]


def style_of(method: str) -> str:
    """Ours stand out; the others are told apart by their labels."""
    return "ours" if method.startswith("agspec") else "base"


def _middle(kind: str, rows: Sequence[Row]) -> tuple[list[tuple[str, Row]], str]:
    """Each method's row at the middle batch, cost ratio or cost, with its label, and the words that say which that is.

    A method that was not run there is shown at its own last, and its label says so.
    """
    word, values = variant_word(rows, kind), variants(rows, kind)
    if not values:
        return [(method_of(row), row) for row in rows], ""
    middle = values[len(values) // 2]
    chosen = []
    for method in distinct([method_of(row) for row in rows]):
        mine = [row for row in rows if method_of(row) == method]
        found = [row for row in mine if variant(row, kind) == middle]
        chosen += [(method, row) for row in found] or [(f"{method}, {word} {plain(variant(mine[-1], kind))}", mine[-1])]
    return chosen, f" At {word} {plain(middle)}." if len(values) > 1 else ""


def _simple(method: str, label: str, value: float, shown: str, interval: tuple[float, float] | None = None) -> Bar:
    return Bar(label, shown, (Part(style_of(method), value, hint=f"{label}: {shown}"),), interval)


def _top(bars: Sequence[Bar]) -> float:
    """Where the scale ends: at the longest bar, or a little past the highest interval's end."""
    ends = [sum(part.length for part in bar.parts) for bar in bars]
    ends += [bar.interval[1] * 1.02 for bar in bars if bar.interval]
    return max(ends, default=0.0) or 1.0


def _mean(row: Row) -> float | None:
    return number(row.get("mean_acceptance_length"))


def _length(kind: str, rows: Sequence[Row]) -> list[Chart]:
    pool = [row for row in pooled(rows, kind) if _mean(row) is not None]
    if not pool:
        return []
    traces = distinct([str(row["trace"]) for row in rows if "trace" in row])
    chosen, where = _middle(kind, pool)
    bars, ranged = [], False
    for label, row in chosen:
        means = [_mean(other) or 0.0 for other in pool if method_of(other) == method_of(row)]
        ends = (min(means), max(means))
        vary = fixed(ends[0], 2) != fixed(ends[1], 2)
        ranged |= vary
        shown = fixed(_mean(row), 2) + (f" ({span(ends, lambda value: fixed(value, 2))})" if vary else "")
        bars.append(_simple(method_of(row), label, _mean(row) or 0.0, shown, ends if vary else None))
    word = variant_word(rows, kind)
    note = "Output tokens a step of the model, the bonus token included; 1 (dashed) is no speculation."
    note += f" All {len(traces)} traces together." if len(traces) > 1 else ""
    note += where + (f" Whiskers: from the lowest to the highest over every {word}." if ranged else "")
    whole = Chart(
        title="Mean acceptance length by method",
        note=note,
        panels=(Bars("", tuple(bars), _top(bars), mark=1.0),),
        heads=("method", word, "tokens a step"),
        cells=tuple((method_of(row), plain(variant(row, kind)), fixed(_mean(row), 2)) for row in pool),
    )
    return [whole] if len(traces) < 2 else [whole, _length_by_trace(kind, rows, traces)]


def _length_by_trace(kind: str, rows: Sequence[Row], traces: Sequence[str]) -> Chart:
    rows = [row for row in rows if _mean(row) is not None]
    chosen, where = _middle(kind, rows)
    cells, bars = [], []
    for trace in traces:
        mine = [(label, row) for label, row in chosen if str(row.get("trace")) == trace]
        bars.append(
            tuple(_simple(method_of(row), label, _mean(row) or 0.0, fixed(_mean(row), 2)) for label, row in mine)
        )
        cells += [(trace, bar.label, bar.shown) for bar in bars[-1]]
    top = _top([bar for group in bars for bar in group])
    return Chart(
        title="Mean acceptance length by trace",
        note=f"Output tokens a step of the model; all traces on one scale.{where}",
        panels=tuple(Bars(trace, group, top, mark=1.0) for trace, group in zip(traces, bars, strict=True) if group),
        heads=("trace", "method", "tokens a step"),
        cells=tuple(cells),
        num_text=2,
    )


def _speed(rows: Sequence[Row]) -> Chart | None:
    rows = [row for row in rows if number(row.get("tokens_per_s")) is not None]
    panels, cells = [], []
    for batch in distinct([number(row.get("batch")) for row in rows]):
        bars, mark = [], None
        for row in rows:
            if number(row.get("batch")) != batch:
                continue
            method, value = method_of(row), number(row["tokens_per_s"]) or 0.0
            mark = value if method == "none" else mark
            interval, times = pair(row.get("tokens_per_s_interval")), ratio(row, "ratio_to_none")
            more = (
                f" \N{MIDDLE DOT} {times:.2f}\N{MULTIPLICATION SIGN}" if times is not None and method != "none" else ""
            )
            bars.append(_simple(method, method, value, f"{speed(value)}{more}", interval))
            cells.append((method, plain(batch), speed(value), span(interval, speed), fixed(times, 2)))
        title = "tokens/s" if batch is None else f"Batch {plain(batch)}"
        panels.append(Bars(title, tuple(bars), _top(bars), mark))
    if not panels:
        return None
    return Chart(
        title="Tokens per second by batch",
        note="Output tokens a second while decoding: median over the repeats, its 95% interval, and the ratio to none"
        " (dashed line: none). Each batch size has its own scale.",
        panels=tuple(panels),
        heads=("method", "batch", "tokens/s", "95% interval", "x none"),
        cells=tuple(cells),
    )


def _speedup(rows: Sequence[Row]) -> Chart | None:
    pool = [row for row in pooled(rows, "simulate") if number(row.get("speedup")) is not None]
    if not pool:
        return None
    word, groups = variant_word(pool, "simulate"), []
    for value in distinct([variant(row, "simulate") for row in pool]):
        bars = [
            _simple(method_of(row), method_of(row), number(row["speedup"]) or 0.0, fixed(number(row["speedup"]), 2))
            for row in pool
            if variant(row, "simulate") == value
        ]
        groups.append((value, tuple(bars)))
    top = _top([bar for _, bars in groups for bar in bars])
    how = "where a step takes what the cost profile says" if word == "cost" else (
        "where each token verified costs this share of what a step costs anyway")  # fmt: skip
    at = batch_words(pool)
    return Chart(
        title=f"Modelled speedup by {word}",
        note=f"Over one token a step{at and f' at {at}'}, {how} (dashed line: no gain). A model, not a measurement.",
        panels=tuple(Bars(f"{word.capitalize()} {plain(value)}", bars, top, mark=1.0) for value, bars in groups),
        heads=("method", word, "speedup"),
        cells=tuple((bar.label, plain(value), bar.shown) for value, bars in groups for bar in bars),
    )


def _stores(kind: str, rows: Sequence[Row]) -> Chart | None:
    chosen, where = _middle(kind, [row for row in pooled(rows, kind) if sum(by_store(row).values()) > 0])
    found = [(label, by_store(row)) for label, row in chosen]
    if not found:
        return None
    names: list[str] = [name for name in SOURCE_NAMES if any(name in stores for _, stores in found)]
    names += sorted({name for _, stores in found for name in stores} - set(names))
    styles = {name: f"store{i % 5}" for i, name in enumerate(names)}
    bars, cells = [], []
    for label, stores in found:
        total = sum(stores.values())
        parts = []
        for name in names:
            share = stores.get(name, 0.0) / total
            cells.append((label, name, fixed(stores.get(name, 0.0), 0), percent(share)))
            if share > 0:
                text = percent(share) if share >= 0.12 else ""
                parts.append(Part(styles[name], share, text, f"{name}: {percent(share)}"))
        bars.append(Bar(label, f"{fixed(total, 0)} tokens", tuple(parts)))
    return Chart(
        title="Accepted tokens by store",
        note=f"Which store the accepted drafted tokens came from.{where}",
        panels=(Bars("", tuple(bars), 1.0),),
        heads=("method", "store", "accepted tokens", "share"),
        cells=tuple(cells),
        legend=tuple((styles[name], name) for name in names),
        num_text=2,
    )


def _positions(kind: str, rows: Sequence[Row]) -> Chart | None:
    pool = [row for row in pooled(rows, kind) if any(numbers(row.get("drafted_at")))]
    chosen, where = _middle(kind, pool)
    panels, cells = [], []
    for method, row in chosen:
        drafted, accepted = numbers(row.get("drafted_at")), numbers(row.get("accepted_at"))
        accepted += [0.0] * (len(drafted) - len(accepted))
        pairs = list(zip(accepted, drafted, strict=False))
        shares = tuple(min(a / d, 1.0) if d else None for a, d in pairs)
        mine = [
            (method, str(i), fixed(d, 0), fixed(a, 0), percent(share))
            for i, ((a, d), share) in enumerate(zip(pairs, shares, strict=True), 1)
        ]
        hints = tuple(f"position {i}: {share} of {d}" for _, i, d, _, share in mine)
        panels.append(Columns(method, shares, hints, (style_of(method_of(row)),) * len(shares)))
        cells += mine
    if not panels:
        return None
    return Chart(
        title="Acceptance by draft position",
        note="Of the tokens drafted at each position (1: the first of a draft), the share accepted. Few drafts reach"
        f" the far positions; the table has the counts.{where}",
        panels=tuple(panels),
        heads=("method", "position", "drafted", "accepted", "share"),
        cells=tuple(cells),
    )
