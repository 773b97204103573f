"""Records to fine-tune on: from edits and from git history, each with a program that makes the result."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from git import Actor, Repo

from agspec.copyedit.ceiling import Case
from agspec.copyedit.program import Copy, parse
from agspec.copyedit.resolve import resolve
from agspec.copyedit.source import Source
from agspec.errors import InputError
from agspec.replay.edits import MEND, read_cases, read_history
from agspec.tokens import load_tokenizer
from agspec.train.records import load_chat_tokenizer, records
from agspec.train.tune import split

BEFORE = "".join(f"value_{i} = compute({i})\n" for i in range(40))
AFTER = BEFORE.replace("compute(20)", "compute(21)")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    repo = Repo.init(tmp_path / "repo")
    who = Actor("a", "a@localhost")
    for message, text in (("Begin", BEFORE), ("Value 20 is too small", AFTER), ("Value 20 is too large", BEFORE)):
        (tmp_path / "repo" / "values.py").write_text(text)
        repo.index.add(["values.py"])
        repo.index.commit(message, author=who, committer=who)
    return tmp_path / "repo"


def test_each_changed_file_of_a_commit_is_an_edit(repository: Path) -> None:
    assert read_history(repository) == [
        Case("values.py", BEFORE, AFTER, "Value 20 is too small"),
        Case("values.py", AFTER, BEFORE, "Value 20 is too large"),
    ]  # fmt: skip
    assert len(read_history(repository, max_commits=1)) == 1


def test_a_record_is_asked_for_as_it_is_served_and_its_program_makes_the_result() -> None:
    (record,) = records([Case("values.py", BEFORE, AFTER, "Mend it.")], load_tokenizer("embedded"), max_tokens=2000,
                        chat=load_chat_tokenizer("embedded"))  # fmt: skip
    program = parse(record["program"].encode())
    assert resolve(program, [Source(BEFORE.encode())]) == AFTER.encode()
    assert sum(isinstance(one, Copy) for one in program) == 2
    assert record["messages"][-1] == {"role": "assistant", "content": record["program"]}
    assert "21|value_20 = compute(20)\n" in record["messages"][-2]["content"]
    assert record["prompt"].endswith("<|im_start|>assistant\n")
    assert record["completion"].rstrip() == f"{record['program']}<|im_end|>"


def test_what_changes_nothing_or_is_too_long_is_left_out() -> None:
    cases = [Case("a", BEFORE, BEFORE), Case("b", "", AFTER), Case("c", BEFORE, AFTER)]
    tokenizer = load_tokenizer("embedded")
    assert [record["name"] for record in records(cases, tokenizer, max_tokens=2000)] == ["c"]
    assert list(records(cases, tokenizer, max_tokens=300)) == []


def test_edits_are_read_with_what_was_asked_for(tmp_path: Path) -> None:
    rows = [
        {"before": "a", "after": "b", "path": "x.py", "subject": "Say b"}, {"before": "a", "after": "c"},
        {"task_id": "P/1", "declaration": "def f():\n", "buggy_solution": "  0\n", "canonical_solution": "  1\n"},
    ]  # fmt: skip
    file = tmp_path / "edits.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    assert read_cases(file) == [
        Case("x.py", "a", "b", "Say b"), Case("2", "a", "c"), Case("P/1", "def f():\n  0\n", "def f():\n  1\n", MEND),
    ]  # fmt: skip
    assert read_cases(file, part="body")[2] == Case("P/1", "  0\n", "  1\n", MEND)


def test_a_record_and_its_like_are_on_one_side() -> None:
    found = [{"before": f"x = {i // 2}", "after": str(i)} for i in range(40)]
    held, kept = split(found, 10)
    assert len(held) == 10
    assert not {record["before"] for record in held} & {record["before"] for record in kept}
    again, _ = split(found[::-1], 10)
    assert {record["before"] for record in again} == {record["before"] for record in held}
    with pytest.raises(InputError, match="want more records than the 40 held out, got 40"):
        split(found, 40)


def test_the_command_writes_them_whole_or_not_at_all(repository: Path, tmp_path: Path) -> None:
    out = tmp_path / "sft.jsonl"
    line = [
        sys.executable,
        "-m",
        "agspec.cli",
        "copy",
        "export-sft",
        str(repository),
        "--model",
        "embedded",
        "-o",
        str(out),
    ]
    done = subprocess.run([*line, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"num_edits": 2, "num_records": 2}
    assert len([json.loads(row) for row in out.read_text().splitlines()]) == 2
    out.unlink()
    done = subprocess.run([*line, "--max-tokens", "9"], capture_output=True, text=True, check=False)
    assert (done.returncode, out.exists()) == (1, False)
    assert "want edits of at most 9 tokens, found none in 2" in done.stderr
