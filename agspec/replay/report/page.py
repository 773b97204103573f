"""Results as one self-contained page: charts, the table behind each, every row, what was set and where it ran."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agspec.replay.report.charts import charts
from agspec.replay.report.frame import facts, figure, frame, table
from agspec.replay.report.rows import Row, columns, corpus_line, kind_of, mapping, method_of, number, plain, rows_of

HEADS = {"bench": "Engine benchmark", "simulate": "Simulation"}
LEADS = {
    "bench": "Recorded sessions on a real engine, its output forced along the recording.",
    "simulate": "Recorded outputs replayed against each method without an engine.",
}


def html_page(results: Sequence[Row], *, title: str) -> str:
    """``results`` of bench and simulate as a page that loads nothing. Same results, same bytes."""
    body = "\n".join(_section(result, f"r{i}") for i, result in enumerate(results, 1))
    return frame(title, body or "<p>No results.</p>")


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
    parts += [figure(chart, f"{name}-c{i}") for i, chart in enumerate(charts(result), 1)]
    if rows:
        shown = columns(kind, rows, page=True)
        cells = [[column.cell(row) for column in shown] for row in rows]
        num_text = sum(column.text for column in shown)
        data = table("Every row", [column.head for column in shown], cells, num_text)
        parts.append(f"<figure><details><summary>Every row ({len(rows)})</summary>{data}</details></figure>")
    else:
        parts.append("<p>No rows.</p>")
    parts += [facts("Settings", result.get("settings")), facts("Versions and machine", result.get("environment"))]
    return "\n".join([part for part in parts if part] + ["</section>"])
