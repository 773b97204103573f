"""Results as one self-contained page: charts, the table behind each, every row, what was set and where it ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from agspec.replay.report.charts import Bars, Chart, charts
from agspec.replay.report.rows import Row, columns, corpus_line, kind_of, mapping, method_of, number, plain, rows_of
from agspec.replay.report.style import STYLE
from agspec.replay.report.svg import bars_svg, columns_svg

HEADS = {"bench": "Engine benchmark", "simulate": "Simulation"}
LEADS = {
    "bench": "Recorded sessions on a real engine, its output forced along the recording.",
    "simulate": "Recorded outputs replayed against each method without an engine.",
}


def html_page(results: Sequence[Row], *, title: str) -> str:
    """``results`` of bench and simulate as a page that loads nothing. Same results, same bytes."""
    body = "\n".join(_section(result, f"r{i}") for i, result in enumerate(results, 1))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{escape(title)}</title>
<style>
{STYLE}
</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
{body or "<p>No results.</p>"}
</main>
</body>
</html>
"""


def _section(result: Row, name: str) -> str:
    kind, rows = kind_of(result), rows_of(result)
    model = mapping(result.get("settings")).get("model")
    head = HEADS[kind] + (f": {model}" if isinstance(model, str) else "")
    parts = [f'<section aria-labelledby="{name}">', f'<h2 id="{name}">{escape(head)}</h2>']
    parts.append(f'<p class="note">{LEADS[kind]}</p>')
    lost = [
        f"{method_of(row)}, batch {plain(number(row.get('batch')))}"
        for row in rows
        if row.get("tape_followed") is False
    ]
    if lost:
        said = "Did not follow the recording, so the numbers do not compare: " + "; ".join(lost)
        parts.append(f'<p class="warn">{escape(said)}.</p>')
    corpus = corpus_line(result)
    if corpus is not None:
        parts.append(f'<p class="{"warn" if corpus[1] else "note"}">{escape(corpus[0])}</p>')
    for method, reason in mapping(result.get("missing")).items():
        parts.append(f"<p><strong>{escape(method)}</strong> not measured: {escape(str(reason))}</p>")
    parts += [_figure(chart, f"{name}-c{i}") for i, chart in enumerate(charts(result), 1)]
    if rows:
        shown = columns(kind, rows, page=True)
        cells = [[column.cell(row) for column in shown] for row in rows]
        num_text = sum(column.text for column in shown)
        data = _table("Every row", [column.head for column in shown], cells, num_text)
        parts.append(f"<figure><details><summary>Every row ({len(rows)})</summary>{data}</details></figure>")
    else:
        parts.append("<p>No rows.</p>")
    parts += [_facts("Settings", result.get("settings")), _facts("Versions and machine", result.get("environment"))]
    return "\n".join([part for part in parts if part] + ["</section>"])


def _figure(chart: Chart, name: str) -> str:
    slots = max((len(panel.shares) for panel in chart.panels if not isinstance(panel, Bars)), default=0)
    panels = []
    for i, panel in enumerate(chart.panels, 1):
        said = f"{chart.title}: {panel.title}" if panel.title else chart.title
        if isinstance(panel, Bars):
            drawn = bars_svg(panel, name=f"{name}-{i}", title=said)
        else:
            drawn = columns_svg(panel, slots=slots, name=f"{name}-{i}", title=said)
        head = f"<h4>{escape(panel.title)}</h4>" if panel.title else ""
        panels.append(f"<div>{head}{drawn}</div>")
    legend = "".join(
        f'<li><svg width="14" height="14" aria-hidden="true"><rect class="{style}" width="14" height="14"/></svg>'
        f"{escape(word)}</li>"
        for style, word in chart.legend
    )
    data = _table(chart.title, chart.heads, chart.cells, chart.num_text)
    return "\n".join(
        [
            "<figure>",
            f'<figcaption><h3>{escape(chart.title)}</h3><p class="note">{escape(chart.note)}</p></figcaption>',
            *([f'<ul class="legend">{legend}</ul>'] if legend else []),
            f'<div class="panels">{"".join(panels)}</div>',
            f"<details><summary>Data</summary>{data}</details>",
            "</figure>",
        ]
    )


def _table(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]], num_text: int) -> str:
    """The first ``num_text`` columns hold text."""
    style = [' class="text"' if i < num_text else "" for i in range(len(heads))]
    head = "".join(f'<th scope="col"{style[i]}>{escape(word)}</th>' for i, word in enumerate(heads))
    body = "\n".join(
        "<tr>" + "".join(f"<td{style[i]}>{escape(cell)}</td>" for i, cell in enumerate(row)) + "</tr>" for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}, data"><table>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _facts(head: str, value: object) -> str:
    facts = list(_flat(value)) if isinstance(value, Mapping) else []
    if not facts:
        return ""
    body = "\n".join(f'<tr><th scope="row">{escape(key)}</th><td>{escape(text)}</td></tr>' for key, text in facts)
    return (
        f'<figure><h3>{head}</h3><div class="scroll"><table class="facts"><tbody>{body}</tbody></table></div></figure>'
    )


def _flat(value: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Leaves with dotted keys, in the order given."""
    for key, item in value.items():
        if isinstance(item, Mapping) and item:
            yield from _flat(item, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _shown(item)


def _shown(value: object) -> str:
    if value is None or value in ("", [], {}, ()):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_shown(item) for item in value)
    return str(value)
