"""``agspec copy kernel`` and ``agspec copy train`` on the real engine, small. ``make e2e`` runs these."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agspec.copyedit.ceiling import Case
from agspec.replay.trace import write_whole
from agspec.tokens import load_tokenizer
from agspec.train.records import records

pytestmark = pytest.mark.long
LINES = "".join(f"value_{i} = compute({i})\n" for i in range(12))


def run(*words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "agspec.cli", "copy", *words]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("backend", [("vllm",), ("hf", "--random-weights")])
def test_the_kernels_table_goes_into_the_ceiling(backend: tuple[str, ...], tmp_path: Path) -> None:
    out, data = tmp_path / "kernel.json", tmp_path / "edits.jsonl"
    data.write_text(json.dumps({"before": LINES, "after": LINES.replace("7)", "8)")}))
    done = run("kernel", "--model", "embedded", "--sizes", "8,64", "--contexts", "200", "--repeats", "2",
               "--backend", *backend, "-o", str(out))  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(out.read_text())
    assert [(row["context"], row["tokens"]) for row in told["rows"]] == [(200, 8), (200, 64)]
    assert all(row["splice_ms"] > 0 and row["step_ms"] > 0 for row in told["rows"])
    assert told["rows"][1]["faster"] > told["rows"][0]["faster"], "the longer the copy, the more it saves"
    assert ("faster_than_drafted" in told["rows"][0]) == (backend[0] == "vllm")
    assert "█" in done.stdout
    bound = run("ceiling", str(data), "--tokenizer", "embedded", "--kernel", str(out))
    assert bound.returncode == 0, bound.stderr


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (("--sizes", "0"), "--sizes: want positive numbers joined by commas, got '0'"),
        (("--contexts", "100"), "--contexts: want more tokens than are copied (512), got 100"),
        (("--max-model-len", "900"), "--max-model-len: want 5224 tokens or more for these cells, got 900"),
        (("--random-weights",), "--random-weights: want it with --backend hf, got vllm"),
    ],
)
def test_cells_that_cannot_be_are_one_line(flags: tuple[str, ...], line: str) -> None:
    done = run("kernel", "--model", "embedded", *flags)
    assert (done.returncode, done.stderr.strip()) == (1, f"Error: {line}")


def test_training_gives_a_model_and_tells_before_and_after(tmp_path: Path) -> None:
    cases = [Case("a.py", LINES, LINES.replace(f"compute({i})", f"compute({i}0)"), f"Make value {i} greater.")
             for i in range(8)]  # fmt: skip
    cases += [Case("b.py", f"# {i}\n{LINES}", f"# {i}\n{LINES}# end\n", "Add an end.") for i in range(4)]
    data = tmp_path / "sft.jsonl"
    found = records(cases, load_tokenizer("embedded"), max_tokens=2000)
    write_whole(data, b"".join(json.dumps(record).encode() + b"\n" for record in found))
    line = ("train", str(data), "--model", "embedded", "-o", str(tmp_path / "model"), "--held-out", "2",
            "--epochs", "1", "--minutes", "0.5", "--json")  # fmt: skip
    done = run(*line)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["training"]["num_records"] > 0
    for when in ("before", "after"):
        assert told[when]["of"] == 2
        assert told[when]["exact"] <= told[when]["resolved"] <= 2
    assert (tmp_path / "model" / "tokenizer.json").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    again = run(*line)
    assert (again.returncode, "want a folder that does not exist yet, found one" in again.stderr) == (1, True)
