"""The report: structure, escaping, absent data, same bytes, width. How it looks was judged by eye."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from agspec.replay.report import html_page, table
from agspec.replay.report.charts import charts
from agspec.replay.report.rows import pooled
from agspec.replay.report.shapes import Bars, Columns
from agspec.replay.report.style import STYLE

VOID = {"meta"}


def bench_row(method: str, batch: int, tokens_per_s: float, length: float, **more: Any) -> dict[str, Any]:
    return {
        "method": method,
        "batch": batch,
        "tokens_per_s": tokens_per_s,
        "tokens_per_s_interval": [tokens_per_s * 0.97, tokens_per_s * 1.03],
        "end_to_end_tokens_per_s": tokens_per_s * 0.8,
        "ratio_to_none": {"median": tokens_per_s / (40 * batch), "interval": [0.9, 2.1]},
        "ratio_to_suffix": None,
        "num_steps": 1000,
        "num_tokens": int(1000 * length),
        "num_draft_tokens": 0 if length == 1 else 3000,
        "num_accepted_tokens": int(1000 * (length - 1)),
        "mean_acceptance_length": length,
        "by_source": {},
        "tape_followed": True,
        "repeats": 5,
        **more,
    }


def bench_result() -> dict[str, Any]:
    ours = {
        "by_source": {"session": {"num_accepted_tokens": 1500}, "shared": {"num_accepted_tokens": 500}},
        "drafted_at": [100, 50, 0],
        "accepted_at": [80, 25],
    }
    return {
        "kind": "bench",
        "settings": {"model": "smollm2", "batches": [1, 4], "settings": {"caps": None, "strict": False}},
        "environment": {"vllm": "0.32.1", "machine": "2 cores"},
        "missing": {"suffix": "arctic-inference is not installed; pip install 'agspec[bench]'"},
        "rows": [
            row
            for batch in (1, 4)
            for row in (
                bench_row("none", batch, 40.0 * batch, 1.0),
                bench_row("agspec", batch, 80.0 * batch, 3.0, **ours),
            )
        ],
    }


def simulate_row(trace: str, method: str, ratio: float, steps: int, **more: Any) -> dict[str, Any]:
    return {
        "trace": trace,
        "method": method,
        "cost_ratio": ratio,
        "num_steps": steps,
        "num_tokens": 1000,
        "num_drafts": 10,
        "num_draft_tokens": 1000,
        "num_accepted_tokens": 1000 - steps,
        "mean_acceptance_length": 1000 / steps,
        "propose_us": {"p50": 21.4, "p99": 1234.0},
        "model_time": steps * (1 + ratio) + ratio * 1000,
        "model_time_none": 1000 * (1 + ratio),
        "speedup": 1.5,
        **more,
    }


def simulate_result() -> dict[str, Any]:
    rows = []
    for trace in ("first", "second"):
        for ratio in (0.01, 0.1, 0.4):
            rows.append(simulate_row(trace, "ngram", ratio, 600, drafted_at=[10, 10], accepted_at=[5, 2]))
            rows.append(simulate_row(trace, "agspec", ratio, 400 + int(100 * ratio), drafted_at=[20], accepted_at=[15]))
    return {"kind": "simulate", "settings": {"tokenizer": "smollm2"}, "missing": {}, "rows": rows}


def profile_result() -> dict[str, Any]:
    """One trace at batch 4, by two cost profiles."""
    result = simulate_result()
    result["rows"] = [
        {key: value for key, value in row.items() if key != "cost_ratio"}
        | {"cost": cost, "batch": 4, "mean_batch": 3.5}
        for row, cost in zip(result["rows"][:4], ("h100-7b", "h100-7b", "a100-7b", "a100-7b"), strict=True)
    ]
    return result


def printed(result: dict[str, Any], width: int = 120) -> str:
    out = StringIO()
    Console(file=out, width=width, color_system=None).print(table(result))
    return out.getvalue()


class Page(HTMLParser):
    """The elements of a page, in order, with balance and ids checked."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open
        self.ids = [attrs["id"] for _, attrs in self.found if "id" in attrs]
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.found if name == tag]


def titles(result: dict[str, Any]) -> list[str]:
    return [chart.title for chart in charts(result)]


def test_table_of_bench() -> None:
    lines = [line.rstrip() for line in printed(bench_result()).splitlines()]
    rows = [line.split() for line in lines if line.strip().startswith(("none", "agspec"))]
    assert rows == [
        ["none", "1", "40.0", "38.8-41.2", "32.0", "1.00", "1.00", "0.00", "-", "yes"],
        ["agspec", "1", "80.0", "77.6-82.4", "64.0", "2.00", "3.00", "3.00", "67%", "yes"],
        ["none", "4", "160", "155-165", "128", "1.00", "1.00", "0.00", "-", "yes"],
        ["agspec", "4", "320", "310-330", "256", "2.00", "3.00", "3.00", "67%", "yes"],
    ]
    assert lines[-1].startswith("suffix  not measured: arctic-inference is not installed; pip install 'agspec[bench]'")
    ends = {line.index(row[3]) + len(row[3]) for line in lines for row in rows if row[3] in line}
    assert len(ends) == 1, "numbers are right-aligned"


def test_table_of_simulate() -> None:
    lines = printed(simulate_result()).splitlines()
    rows = [line.split() for line in lines if re.search(r"\b(ngram|agspec)\b", line)]
    assert len(rows) == 12
    assert rows[0] == ["first", "ngram", "0.01", "1.67", "1.67", "40%", "1.50", "21", "1,234"]
    assert rows[1] == ["agspec", "0.01", "2.49", "2.49", "60%", "1.50", "21", "1,234"]
    assert sum("second" in line for line in lines) == 1, "a trace is named once"


def test_a_cost_is_named_and_the_batch_told() -> None:
    result = profile_result()
    rows = [line.split() for line in printed(result).splitlines() if re.search(r"\b(ngram|agspec)\b", line)]
    assert [row[1:4] for row in rows[:1]] == [["ngram", "h100-7b", "4"]]
    assert [row[:3] for row in rows[1:]] == [[row["method"], row["cost"], "4"] for row in result["rows"][1:]]
    length, speedup, _ = charts(result)
    assert length.heads == ("method", "cost", "tokens a step")
    assert "At cost a100-7b." in length.note
    assert speedup.title == "Modelled speedup by cost"
    assert [panel.title for panel in speedup.panels] == ["Cost h100-7b", "Cost a100-7b"]
    assert "at batch 4, where a step takes what the cost profile says" in speedup.note
    words = " ".join(Page(html_page([result], title="t")).words)
    assert "rows a step" in words
    assert "3.50" in words
    assert "Simulation" in html_page([{"rows": result["rows"]}], title="t"), "a batch alone is no bench"


def test_pooled_rows_keep_cost_and_batch() -> None:
    rows = profile_result()["rows"]
    (row,) = pooled([rows[0], {**rows[0], "trace": "b", "num_steps": 400}], "simulate")
    assert (row["cost"], row["batch"], row["num_steps"]) == ("h100-7b", 4, 1000)
    assert len(pooled([rows[0], {**rows[0], "batch": 8}], "simulate")) == 2


def test_table_says_where_a_tape_was_not_followed() -> None:
    result = bench_result()
    result["rows"][0]["tape_followed"] = False
    assert " NO" in printed(result)
    assert "do not compare: none, batch 1." in html_page([result], title="t")


@pytest.mark.parametrize("width", [120, 200])
def test_table_is_at_most_120_wide(width: int) -> None:
    bench, simulate = bench_result(), simulate_result()
    for row in bench["rows"]:
        row |= {"method": "agspec-suffix-and-more-of-it", "tokens_per_s": 123456.7}
        row |= {"tokens_per_s_interval": [123000.1, 124000.2], "end_to_end_tokens_per_s": 99999.0}
        row |= {f"ratio_to_{name}": {"median": 12.345} for name in ("none", "suffix", "async")}
    for row in simulate["rows"]:
        row["trace"] = "a-very-long-name-of-a-trace/" * 4
    bench["missing"] = {"suffix": "why " * 80}
    for result in (bench, simulate):
        text = printed(result, width)
        assert max(len(line.rstrip()) for line in text.splitlines()) <= 120
        assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert "123,000-124,000" in printed(bench, width)


def test_charts_of_bench() -> None:
    length, speed, stores, positions = charts(bench_result())
    assert length.title == "Mean acceptance length by method"
    assert isinstance(length.panels[0], Bars)
    assert [(bar.label, bar.shown) for bar in length.panels[0].bars] == [("none", "1.00"), ("agspec", "3.00")]
    assert [panel.title for panel in speed.panels] == ["Batch 1", "Batch 4"]
    assert isinstance(speed.panels[1], Bars)
    assert speed.panels[1].mark == 160
    assert speed.panels[1].bars[1].interval == pytest.approx((310.4, 329.6))
    assert speed.panels[1].bars[1].shown == "320 \N{MIDDLE DOT} 2.00\N{MULTIPLICATION SIGN}"
    assert stores.legend == (("store0", "session"), ("store1", "shared"))
    assert [cells[1:] for cells in stores.cells] == [("session", "1,500", "75%"), ("shared", "500", "25%")]
    assert "At batch 4." in positions.note
    assert isinstance(positions.panels[0], Columns)
    assert positions.panels[0].shares == (0.8, 0.5, None)
    assert positions.cells[2] == ("agspec", "3", "0", "0", "-")


def test_charts_of_simulate_pool_the_traces() -> None:
    length, by_trace, speedup, positions = charts(simulate_result())
    assert "All 2 traces together. At cost ratio 0.1." in length.note
    assert isinstance(length.panels[0], Bars)
    assert [bar.shown for bar in length.panels[0].bars] == ["1.67", "2.44 (2.27-2.49)"]
    assert [panel.title for panel in by_trace.panels] == ["first", "second"]
    assert [panel.title for panel in speedup.panels] == ["Cost ratio 0.01", "Cost ratio 0.1", "Cost ratio 0.4"]
    assert positions.cells[0] == ("ngram", "1", "20", "10", "50%")


def test_pooled_figures_come_from_summed_counts() -> None:
    rows = [simulate_row("a", "ngram", 0.1, 500), simulate_row("b", "ngram", 0.1, 250)]
    (row,) = pooled(rows, "simulate")
    assert row["mean_acceptance_length"] == pytest.approx(2000 / 750)
    assert row["speedup"] == pytest.approx(2000 * 1.1 / (750 * 1.1 + 0.1 * 2000))
    del rows[1]["num_steps"], rows[1]["model_time"]
    (row,) = pooled(rows, "simulate")
    assert row["mean_acceptance_length"] is None
    assert row["speedup"] is None


def test_a_method_not_run_at_the_middle_is_shown_at_its_own() -> None:
    result = bench_result()
    result["rows"] = [row for row in result["rows"] if (row["method"], row["batch"]) != ("none", 4)]
    panel = charts(result)[0].panels[0]
    assert isinstance(panel, Bars)
    assert [bar.label for bar in panel.bars] == ["none, batch 1", "agspec"]


def test_page_is_self_contained_and_accessible() -> None:
    text = html_page([bench_result(), simulate_result()], title="Report")
    page = Page(text)
    assert not re.search(r"<script|<img|<link|@import|url\(|https?:", text)
    assert "prefers-color-scheme: dark" in text
    assert any("default-src 'none'" in (attrs.get("content") or "") for attrs in page.all("meta"))
    drawn = [attrs for attrs in page.all("svg") if "aria-hidden" not in attrs]
    assert len(drawn) == sum(len(chart.panels) for r in (bench_result(), simulate_result()) for chart in charts(r))
    for attrs in drawn:
        assert attrs["role"] == "img"
        assert set((attrs["aria-labelledby"] or "").split()) <= set(page.ids)
    num_charts = len(charts(bench_result())) + len(charts(simulate_result()))
    assert len(page.all("details")) == num_charts + 2, "a table behind each chart, and every row"
    for chart in (*charts(bench_result()), *charts(simulate_result())):
        assert all(len(cells) == len(chart.heads) for cells in chart.cells)
    words = " ".join(page.words)
    for told in ("settings.caps", "batches", "1, 4", "0.32.1", "2 cores", "smollm2", "suffix not measured"):
        assert told in re.sub(r"\s+", " ", words)


def test_every_class_has_a_style_and_every_colour_two_schemes() -> None:
    text = html_page([bench_result(), simulate_result()], title="Report")
    used = {name for found in re.findall(r'class="([^"]+)"', text) for name in found.split()}
    assert {name for name in used if f".{name}" not in STYLE} <= {"note"}
    light, dark = STYLE.split("@media (prefers-color-scheme: dark)")
    names = set(re.findall(r"(--[\w-]+):", light))
    assert names == set(re.findall(r"(--[\w-]+):", dark))
    assert set(re.findall(r"var\((--[\w-]+)\)", STYLE)) <= names


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast(scheme: int) -> None:
    colours = dict(re.findall(r"(--[\w-]+): (#\w{6})", STYLE.split("@media (prefers-color-scheme: dark)")[scheme]))
    page = colours["--page"]
    for text in ("--ink", "--soft", "--warn"):
        assert contrast(colours[text], page) >= 4.5
    for bar in ("--ours", "--base"):
        assert contrast(colours[bar], page) >= 3
        assert contrast(colours[bar], colours["--track"]) >= 3
    for i in range(5):
        assert contrast(colours[f"--store{i}"], colours[f"--store{i}-ink"]) >= 4.5


def test_values_are_escaped() -> None:
    evil = '"><script>alert(1)</script>&[red]'
    result = bench_result()
    for row in result["rows"]:
        row["method"] = evil
        row["by_source"] = {evil: {"num_accepted_tokens": 3}}
    result |= {"missing": {evil: evil}, "settings": {"model": evil, evil: [evil]}, "environment": {evil: {evil: evil}}}
    simulate = simulate_result()
    for row in simulate["rows"]:
        row["trace"] = evil + row["trace"]
    text = html_page([result, simulate], title=evil)
    assert "<script" not in text
    Page(text)
    assert "[red]" in printed(result)


def test_same_results_same_bytes() -> None:
    pages = {html_page([bench_result(), simulate_result()], title="Report") for _ in range(3)}
    assert len(pages) == 1


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"rows": []},
        {"kind": "bench", "rows": None, "missing": None, "settings": None, "environment": None},
        {"kind": "bench", "rows": [{}], "settings": {}},
        {"kind": "bench", "rows": [{"method": "agspec", "batch": 1, "ratio_to_none": None}]},
        {"kind": "simulate", "rows": [{}, {"trace": "a"}, {"trace": "b", "method": "none"}]},
        {"kind": "simulate", "rows": [{"method": "none", "mean_acceptance_length": float("nan"), "by_source": []}]},
        {"rows": [{"method": "x", "batch": 1, "tokens_per_s": 0.0, "tokens_per_s_interval": [], "num_steps": 0}]},
        {"rows": [{"method": "x", "drafted_at": [0, 0], "accepted_at": None, "by_source": {"session": None}}]},
        {"rows": [{"method": "x", "mean_acceptance_length": 0.0, "by_source": {"s": {"num_accepted_tokens": 0}}}]},
    ],
)
def test_absent_data_is_left_out(result: dict[str, Any]) -> None:
    assert isinstance(printed(result), str)
    text = html_page([result], title="Report")
    Page(text)
    assert "nan" not in text


def test_no_results() -> None:
    assert "No results." in html_page([], title="Report")


@pytest.mark.parametrize(
    ("key", "title"),
    [
        ("mean_acceptance_length", "Mean acceptance length by method"),
        ("tokens_per_s", "Tokens per second by batch"),
        ("by_source", "Accepted tokens by store"),
        ("drafted_at", "Acceptance by draft position"),
    ],
)
def test_a_chart_without_data_is_left_out(key: str, title: str) -> None:
    result = bench_result()
    every = titles(result)
    assert title in every
    for row in result["rows"]:
        row.pop(key, None)
    assert titles(result) == [other for other in every if other != title]
