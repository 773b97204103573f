"""A result as a table for the terminal."""

from __future__ import annotations

from textwrap import fill

from rich import box
from rich.table import Table
from rich.text import Text

from agspec.replay.report.rows import ABSENT, Row, columns, corpus_line, kind_of, mapping, method_of, rows_of

WIDTH = 120
"""Most columns of the terminal that a table takes."""
NAME_WIDTH = 20
"""Most that a trace's or method's name takes before it wraps."""
HEAD_WIDTH = 5
"""Where the head of a column breaks, after a word."""


def table(result: Row) -> Table:
    """``result`` of bench or simulate: a row a (trace,) method and batch or cost ratio, then corpus, missing methods.

    At most 120 wide. Print it with ``Console(width=120)`` where stdout is no terminal, or rich takes 80.
    """
    kind, rows = kind_of(result), rows_of(result)
    shown = columns(kind, rows, page=False)
    body = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    for column in shown:
        head = fill(column.head, HEAD_WIDTH, break_long_words=False)
        body.add_column(head, justify="left" if column.text else "right", overflow="fold", max_width=NAME_WIDTH)
    for i, row in enumerate(rows):
        last = i + 1 == len(rows) or _group(kind, rows[i + 1]) != _group(kind, row)
        again = i > 0 and rows[i - 1].get("trace") == row.get("trace")
        cells = ("" if again and column.head == "trace" else column.cell(row) for column in shown)
        body.add_row(*(_cell(cell, method_of(row)) for cell in cells), end_section=last)
    whole = Table.grid()
    whole.add_column(max_width=WIDTH)
    whole.add_row(body)
    corpus = corpus_line(result)
    if corpus is not None:
        whole.add_row("")
        whole.add_row(Text(corpus[0], style="bold red" if corpus[1] else ""))
    missing = mapping(result.get("missing"))
    if missing:
        absent = Table.grid(padding=(0, 2, 0, 0))
        absent.add_column(max_width=NAME_WIDTH, overflow="fold")
        absent.add_column(overflow="fold")
        for method, reason in missing.items():
            absent.add_row(Text(method), Text(f"not measured: {reason}"))
        whole.add_row("")
        whole.add_row(absent)
    return whole


def _group(kind: str, row: Row) -> object:
    return row.get("batch") if kind == "bench" else (row.get("trace"), method_of(row))


def _cell(text: str, method: str) -> Text:
    style = "dim" if text == ABSENT else "bold" if method.startswith("agspec") else ""
    return Text(text, style=style)
