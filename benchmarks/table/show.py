"""A result as tables for the terminal, at most 120 wide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

WIDTH = 120
_SHORT = {
    "ngram tuned": "ngram\ntuned", "suffix tuned": "suffix\ntuned", "sam tuned": "sam\ntuned",
    "rest tuned": "REST\ntuned", "agspec-suffix": "agspec-\nsuffix",
}  # fmt: skip


def show(result: Mapping[str, Any]) -> None:
    """Everything, on stdout."""
    console = Console(width=WIDTH, highlight=False)
    console.print(_families(result["families"]))
    for name, view in result["views"].items():
        console.print(_view(view))
        console.print(_comparisons(result["comparisons"][name]))
    if result["ablations"]:
        console.print(_ablations(result["ablations"]))
    console.print(_chosen(result["chosen"]))
    console.print(_targets(result["targets"]))
    for name, why in result["not_had"].items():
        console.print(f"  {name} is not in the table: {why}")
    console.print("  ".join(f"{key} {value}" for key, value in result["environment"].items()), style="dim")


def _table(title: str, heads: Sequence[str], *, left: int = 1) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for i, head in enumerate(heads):
        table.add_column(head, justify="left" if i < left else "right", no_wrap=True)
    return table


def _families(families: Iterable[Mapping[str, Any]]) -> Table:
    table = _table("Families", ["family", "sessions", "calls", "output tokens", "in the mean"])
    for row in families:
        cells = [row["family"], row["num_sessions"], row["num_calls"], f"{row['num_tokens']:,}", _yes(row["in_mean"])]
        table.add_row(*map(str, cells), style=_style(row))
    return table


def _view(view: Mapping[str, Any]) -> Table:
    rows = view["rows"]
    methods = list(rows[0]["speedup"])
    heads = ["family", "b/a", *(_SHORT.get(method, method) for method in methods), "agspec over suffix,\n% (95 %)"]
    table = _table(f"{view['title']} (speedup over one token a step)", heads)
    for i, row in enumerate(rows):
        again = i > 0 and rows[i - 1]["family"] == row["family"]
        cells = [f"{row['speedup'][method]:.2f}" for method in methods]
        gain, *ends = (f"{100 * value:.1f}" for value in (row["agspec_over_suffix"], *row["interval"]))
        last = i + 1 == len(rows) or rows[i + 1]["family"] != row["family"]
        name = "" if again else row["family"]
        table.add_row(
            name, f"{row['ratio']:g}", *cells, f"{gain} ({' to '.join(ends)})", style=_style(row), end_section=last
        )
    return table


def _comparisons(comparisons: Iterable[Mapping[str, Any]]) -> Table:
    table = _table("", ["gain", "mean", "95 %", "faster in", "worst setting"])
    for row in comparisons:
        ends = " to ".join(percent(end) for end in row["interval"])
        worst = f"{percent(row['worst'])} {row['worst_setting']}"
        faster = f"{row['num_faster']} of {row['num_settings']}"
        table.add_row(f"{row['method']} over {row['over']}", percent(row["mean"]), ends, faster, worst)
    return table


def _ablations(ablations: Sequence[Mapping[str, Any]]) -> Table:
    families = list(dict.fromkeys(row["family"] for row in ablations))
    ratios = list(dict.fromkeys(row["ratio"] for row in ablations))
    heads = ["switched off", "b/a", *(family.replace(" ", "\n") for family in families), "mean"]
    table = _table("What each part is worth: agspec over itself without it", heads)
    for name in dict.fromkeys(row["name"] for row in ablations):
        for ratio in ratios:
            here = {row["family"]: row for row in ablations if (row["name"], row["ratio"]) == (name, ratio)}
            counted = [row["worth"] for row in here.values() if row["in_mean"]]
            mean = percent(sum(counted) / len(counted)) if counted else "-"
            cells = [percent(here[family]["worth"]) for family in families]
            table.add_row(
                name if ratio == ratios[0] else "", f"{ratio:g}", *cells, mean, end_section=ratio == ratios[-1]
            )
    return table


def _chosen(chosen: Sequence[Mapping[str, Any]]) -> Table:
    heads = ["family", "method", "b/a", "chosen on the second half", "chosen on the first half"]
    table = _table("Baselines' settings, chosen on one half of the sessions and used on the other", heads, left=5)
    for i, row in enumerate(chosen):
        before = chosen[i - 1] if i else {}
        family = "" if row["family"] == before.get("family") else row["family"]
        method = "" if family == "" and row["method"] == before.get("method") else row["method"]
        table.add_row(family, method, f"{row['ratio']:g}", *row["values"])
    return table


def _targets(targets: Iterable[Mapping[str, Any]]) -> Table:
    table = _table("Targets", ["", "wanted", "reached", "met"])
    for row in targets:
        told = percent if row["is_gain"] else "{:g}".format
        wanted = "-" if row["want"] is None else told(row["want"])
        met = "-" if row["met"] is None else _yes(row["met"])
        table.add_row(row["text"], wanted, told(row["reached"]), met)
    return table


def percent(value: float) -> str:
    """A gain in percent, with its sign."""
    return f"{100 * value:+.1f}%"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _style(row: Mapping[str, Any]) -> str:
    return "" if row["in_mean"] else "dim"
