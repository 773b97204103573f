"""The ceiling of copying, against what public edit sets were measured to give; and the command line."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from agspec.copyedit.ceiling import Case, measure, search_replace, unified
from agspec.copyedit.kernel import Kernel
from agspec.copyedit.noise import exact_matches, moved
from agspec.copyedit.program import Copy, Gen
from agspec.tokens import load_tokenizer
from tests.support import SHARED, needs_shared

EDITS = SHARED / "edits"
CASE = Case("a.py", "a\nb\nc\nd\ne\nf\n", "a\nb\nC\nd\ne\nf\n")


@pytest.fixture(scope="module")
def qwen():
    return load_tokenizer(SHARED / "tokenizers" / "qwen2.tokenizer.json")


def bodies(language: str) -> list[Case]:
    rows = map(
        json.loads, gzip.decompress((EDITS / "humanevalpack" / f"{language}.jsonl.gz").read_bytes()).splitlines()
    )
    return [Case(row["task_id"], row["buggy_solution"], row["canonical_solution"]) for row in rows]


@needs_shared
@pytest.mark.parametrize(("language", "coverage", "bound"), [("python", 0.743, 3.45), ("js", 0.789, 4.21)])
def test_bodies_of_humanevalpack_give_the_papers_figures(language, coverage, bound, qwen):
    """arXiv 2604.18170's abstract: coverage 74 %, bounds 3.4 x and 4.2 x; bodies alone, tags free."""
    sums = measure(bodies(language), qwen, Kernel())
    assert sums.num_exact == sums.num_cases == 164
    assert sums.covered / sums.output == pytest.approx(coverage, abs=0.001)
    assert sums.bounds["tags free"] == pytest.approx(bound, abs=0.01)
    assert sums.bounds["tags decoded"] < sums.bounds["forced skipped"] < sums.bounds["tags free"]


@needs_shared
def test_commits_are_nearly_all_copies_and_byte_exact(qwen):
    rows = map(
        json.loads, gzip.decompress((EDITS / "gitturns_sqlite_utils" / "turns.jsonl.gz").read_bytes()).splitlines()
    )
    cases = [Case(row["path"], row["before"], row["after"]) for row in rows][::5]
    sums = measure(cases, qwen, Kernel())
    assert sums.num_exact == sums.num_cases == 30
    assert sums.covered / sums.output > 0.97
    assert sums.cheap <= sums.ordered < sums.search_replace < sums.unified_diff < sums.output / 10


def test_other_formats():
    assert search_replace(CASE) == "a.py\n<<<<<<< SEARCH\nc\n=======\nC\n>>>>>>> REPLACE\n"
    twice = Case("a.py", "x\ny\nx\nz\n", "x\ny\nX\nz\n")
    assert "<<<<<<< SEARCH\ny\nx\n=======\ny\nX\n" in search_replace(twice), "context until it stands once"
    assert unified(CASE).splitlines()[2:] == ["@@ -1,6 +1,6 @@", " a", " b", "-c", "+C", " d", " e", " f"]


def test_kernel_costs():
    assert Kernel().steps(8) == pytest.approx(8 / 6.8)
    assert Kernel().steps(512) == pytest.approx(512 / 303)
    assert Kernel(((16, 4.0),)).steps(32) == pytest.approx(8)


def test_moved_copies_stay_in_the_file():
    program = (Copy(1, 2), Gen(b"C\n"), Copy(4, 6))
    assert moved(program, [(-1, -1), (1, 1)], 6) == (Copy(1, 1), Gen(b"C\n"), Copy(5, 6))
    shares = exact_matches([CASE])
    assert shares["all +1"] == shares["all -1"] == 0
    assert 0 < shares["each 0, +-1"] < 0.5


def agspec(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    line = [sys.executable, "-m", "agspec.cli", "copy", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, check=False)


def put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_compile_and_resolve_at_the_command_line(tmp_path):
    one, two = (
        put(tmp_path / "one", b"first line of the one\r\n\xff\n" * 9),
        put(tmp_path / "two", b"of the other\n" * 9),
    )
    after = put(tmp_path / "after", two.read_bytes() + b"new\x00" + one.read_bytes())
    program = tmp_path / "program"
    assert agspec("compile", one, two, after, "-o", program).returncode == 0
    assert program.read_bytes().count(b"<copy") == 2
    assert agspec("resolve", one, two, program).stdout == after.read_bytes()
    done = agspec("resolve", one, program)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"agspec: {program}: program byte 0: want a file from 1 to 1, got 2\n"
    assert b"want SOURCE... PROGRAM" in agspec("resolve", program).stderr
    assert b"No such file" in agspec("resolve", tmp_path / "none", program).stderr
    assert b"at most 10 bytes" in agspec("resolve", one, two, program, "--limit", 10).stderr
    assert agspec("grammar", one, two).stdout.startswith(b"root ::= ")
    assert agspec("grammar", one, "--format", "lark").stdout.startswith(b"start: ")


def test_ceiling_at_the_command_line(tmp_path):
    data = put(tmp_path / "edits.jsonl", json.dumps({"before": CASE.before, "after": CASE.after}).encode() + b"\n")
    told = json.loads(agspec("ceiling", data, "--tokenizer", "embedded", "--json").stdout)
    assert (told["num_cases"], told["num_exact"]) == (1, 1)
    assert b"1 byte-exact" in agspec("ceiling", data, "--tokenizer", "embedded").stdout
    kernel = put(tmp_path / "kernel.json", b'{"points": [[8, 2.0], [64, 9.0]]}')
    slower = json.loads(agspec("ceiling", data, "--tokenizer", "embedded", "--kernel", kernel, "--json").stdout)
    assert slower["bounds"]["tags free"] < told["bounds"]["tags free"]
    wrong = put(tmp_path / "wrong.jsonl", b'{"before": "a"}\n')
    assert b"line 1: want before and after" in agspec("ceiling", wrong, "--tokenizer", "embedded").stderr
    done = agspec("ceiling", data, "--tokenizer", "embedded", "--kernel", wrong)
    assert b"want what agspec copy kernel wrote" in done.stderr
