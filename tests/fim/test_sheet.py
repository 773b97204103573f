"""The cost sheet: sums that can be done by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agspec.fim.sheet import Machine, Prices, Use, sheet

USE = Use(
    requests_a_minute=10, prompt_tokens=1000, fresh_tokens=100, completion_tokens=10, hours_a_day=1, days_a_month=20
)


def test_by_hand():
    prices = Prices(input_million=1.0, output_million=2.0, cached_share=0.1, gpu_hour=2.0, kwh=0.5)
    api, gpu, laptop = sheet(10, USE, prices, Machine(1000, 100), Machine(100, 10, watts=100), peak=8, load=0.5)
    assert USE.requests_a_month == 12_000
    assert api.money == pytest.approx(120_000 * ((100 + 0.1 * 900) * 1.0 + 10 * 2.0) / 1e6)
    # a request keeps a GPU 0.2 s, ten people make 10 / 6 a second in their hour of eight, eight times that at the peak
    assert gpu.money == 1 * 730 * 2.0
    assert "33% busy" in gpu.told
    assert laptop.money == pytest.approx(10 * 12_000 * 2.0 / 3600 * 0.1 * 0.5)


def test_more_people_need_more_gpus():
    rows = [sheet(team, USE, Prices(), Machine(1000, 100), Machine(100, 10))[1].money for team in (1, 100, 1000)]
    assert rows == sorted(rows)
    assert rows[2] > rows[0]


def test_the_command_takes_what_the_benchmark_wrote(tmp_path: Path):
    row = {"drafts": True, "num_asked": 100, "editors": 10, "seconds": 60, "prompt": {"p50": 900}, "fresh": {"p50": 80},
           "tokens_a_completion": 8}  # fmt: skip
    (tmp_path / "fim.json").write_text(json.dumps({"rows": [{**row, "drafts": False}, row]}))
    line = [sys.executable, "-m", "agspec.cli", "fim", "cost", "--measured", str(tmp_path / "fim.json"), "--json"]
    told = json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
    assert told["use"]["requests_a_minute"] == 10
    assert [row["name"] for row in told["rows"]] == ["API", "shared GPU", "laptops"]
    (tmp_path / "fim.json").write_text("{}")
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, "want what benchmarks.fim wrote, got" in done.stderr) == (1, True)
