"""A page that loads nothing, and what pages are made of: charts with the table behind each, tables, facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from agspec.replay.report.shapes import Bars, Chart, Columns, Dots
from agspec.replay.report.style import STYLE
from agspec.replay.report.svg import bars_svg, columns_svg, dots_svg


def frame(title: str, body: str) -> str:
    """The page around ``body`` (HTML); it loads nothing."""
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
{body}
</main>
</body>
</html>
"""


def figure(chart: Chart, name: str) -> str:
    """A chart, its legend and the table behind it; ``name``: prefix of the ids, unique in the page."""
    slots = max((panel.slots for panel in chart.panels if isinstance(panel, Columns)), default=0)
    panels = []
    for i, panel in enumerate(chart.panels, 1):
        said = f"{chart.title}: {panel.title}" if panel.title else chart.title
        if isinstance(panel, Bars):
            drawn = bars_svg(panel, name=f"{name}-{i}", title=said)
        elif isinstance(panel, Columns):
            drawn = columns_svg(panel, slots=slots, name=f"{name}-{i}", title=said)
        else:
            drawn = dots_svg(panel, name=f"{name}-{i}", title=said)
        head = f"<h4>{escape(panel.title)}</h4>" if panel.title else ""
        kind = ' class="square"' if isinstance(panel, Dots) else ""
        panels.append(f"<div{kind}>{head}{drawn}</div>")
    legend = "".join(
        f'<li><svg width="14" height="14" aria-hidden="true"><rect class="{style}" width="14" height="14"/></svg>'
        f"{escape(word)}</li>"
        for style, word in chart.legend
    )
    data = table(chart.title, chart.heads, chart.cells, chart.num_text)
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


def table(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]], num_text: int) -> str:
    """Rows of cells; the first ``num_text`` columns hold text."""
    style = [' class="text"' if i < num_text else "" for i in range(len(heads))]
    head = "".join(f'<th scope="col"{style[i]}>{escape(word)}</th>' for i, word in enumerate(heads))
    body = "\n".join(
        "<tr>" + "".join(f"<td{style[i]}>{escape(cell)}</td>" for i, cell in enumerate(row)) + "</tr>" for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}, data"><table>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def facts(head: str, value: object) -> str:
    """A mapping's leaves by dotted key; nothing where there is none."""
    found = list(_flat(value)) if isinstance(value, Mapping) else []
    if not found:
        return ""
    body = "\n".join(f'<tr><th scope="row">{escape(key)}</th><td>{escape(text)}</td></tr>' for key, text in found)
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
