"""Corpora that are broken, unfit or hold what they are evaluated on: one line each."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from agspec.commands.corpus import corpus_command
from agspec.corpus import HEADS, META, ORDER, TOKENS, mapped, open_corpus
from agspec.errors import InputError
from agspec.replay.corpus import build_corpus, corpus_told, merge_corpora, verify_corpus
from agspec.replay.report import html_page
from agspec.replay.report.rows import corpus_line
from agspec.tokens import Tokenizer
from tests.corpora import WORDS, named, prose, trace_file, two_traces, words_tokenizer
from tests.test_report import printed, simulate_result


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return words_tokenizer(WORDS)


@pytest.fixture
def inputs(tmp_path: Path) -> list[Path]:
    return two_traces(tmp_path)


def test_nothing_to_index(tmp_path: Path, tokenizer: Tokenizer) -> None:
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "dir").mkdir()
    silent = trace_file(tmp_path / "silent.jsonl", [("s", "")])
    whole = gzip.compress(trace_file(tmp_path / "t.jsonl", [("s", prose(1))]).read_bytes())
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[:-20])
    (tmp_path / "bad.jsonl").write_text('{"agspec_trace":1}\n{"session":"s","output":{"content":3}}\n')
    for kind, name, line in (
        ("text", "empty.txt", "want text, got empty files"),
        ("trace", "dir", "want traces .* below it, found none: agspec import"),
        ("trace", "absent", "absent: want a file or folder, found none there"),
        ("trace", silent.name, "want at least one token to index, got none"),
        ("trace", "cut.jsonl.gz", "want a whole gzip file, got a broken one"),
        ("trace", "bad.jsonl", r"bad.jsonl, record 2: output.content: Input should be a valid string"),
    ):
        with pytest.raises(InputError, match=line):
            build_corpus([tmp_path / name], tmp_path / "corpus", tokenizer=tokenizer, kind=kind)
        assert not {"corpus", ".corpus.building"} & named(tmp_path)


@pytest.fixture
def corpus(tmp_path: Path, inputs: list[Path], tokenizer: Tokenizer) -> Iterator[Path]:
    build_corpus(inputs, tmp_path / "corpus", tokenizer=tokenizer)
    return tmp_path / "corpus"


def damage(path: Path, entry: int, value: int) -> None:
    array = np.fromfile(path, "<i4")
    array[entry] = value
    array.tofile(path)


def test_a_broken_corpus_is_one_line(corpus: Path, tokenizer: Tokenizer) -> None:
    shutil.copytree(corpus, kept := corpus.with_name("kept"))

    def line(*, full: bool = False) -> str:
        with pytest.raises(InputError) as caught:
            verify_corpus(corpus, full=full)
        shutil.rmtree(corpus)
        shutil.copytree(kept, corpus)
        assert "\n" not in str(caught.value)
        return str(caught.value).removeprefix(str(corpus))

    order = mapped(kept / ORDER)
    damage(corpus / ORDER, 5, 10**6)
    assert line() == f"/{ORDER}, entry 5: want a position that a token follows, got 1000000"
    damage(corpus / ORDER, 5, int(order[400]))
    assert re.fullmatch(rf"/{ORDER}, entry 5: want it within the places of token \d+, found it outside", line())
    heads = mapped(kept / HEADS)
    wide = int(np.argmax(np.diff(heads)))
    swapped = order[heads[wide] : heads[wide] + 2].tolist()
    for i in range(2):
        damage(corpus / ORDER, int(heads[wide]) + i, swapped[1 - i])
    assert line() == f"/{ORDER}, entry {heads[wide] + 1}: want a context that sorts after the one before, got another"
    damage(corpus / TOKENS, 7, 10**6)
    assert line(full=True) == f"/{TOKENS}, entry 7: want a token below {len(WORDS)}, got 1000000"
    damage(corpus / TOKENS, 31, 5)
    assert re.fullmatch(rf"/{TOKENS}: want sha256 \w{{16}}..., got \w{{16}}...", line())
    damage(corpus / HEADS, -1, 0)
    assert line() == f"/{HEADS}: want places from 0 to {order.size}, got others"
    with (corpus / TOKENS).open("ab") as file:
        file.truncate(100)
    assert line() == f"/{TOKENS}: want 2308 bytes, got 100: build the corpus again"
    (corpus / ORDER).unlink()
    assert line() == f"/{ORDER}: want 2160 bytes, got: No such file or directory"
    info = json.loads((corpus / META).read_text())
    (corpus / META).write_text(json.dumps({**info, "agspec_corpus": 1}))
    assert line() == ": want a corpus of format 2, got 1: build the corpus again"
    (corpus / META).write_text(json.dumps({**info, "num_tokens": "many"}))
    assert line().startswith(f"/{META}: num_tokens: Input should be a valid integer")
    (corpus / META).write_text("{")
    assert line().startswith(f"/{META}: the file: Invalid JSON")
    (corpus / META).unlink()
    assert line() == f": want a corpus folder (agspec corpus build), got no {META}: No such file or directory"


def test_reports_say_which_evaluated_sessions_it_holds(corpus: Path) -> None:
    told = corpus_told(corpus, ["task-1", "task-105#3", "task-1", "other"])
    assert told is not None
    assert told["overlap"] == ["task-1", "task-105#3"]
    assert told["num_evaluated"] == 3
    assert corpus_told(None, ["task-1"]) is None
    result = simulate_result()
    assert corpus_line(result) is None
    result["settings"]["corpus_info"] = told
    line, warns = corpus_line(result) or ("", False)
    assert warns
    assert "It HOLDS 2 of the 3 sessions evaluated: task-1, task-105#3" in line
    assert "It HOLDS 2 of the 3" in printed(result)
    assert '<p class="warn">corpus: 558 tokens of 2 sources' in html_page([result], title="t")
    result["settings"]["corpus_info"] = {**told, "overlap": [], "excluded": ["task-9"]}
    line, warns = corpus_line(result) or ("", True)
    assert not warns
    assert line == (
        "corpus: 558 tokens of 2 sources, 1 session kept out of it; none of the sessions evaluated is in it"
    )


def test_corpora_that_do_not_go_together(tmp_path: Path, inputs: list[Path], tokenizer: Tokenizer) -> None:
    build_corpus(inputs, tmp_path / "a", tokenizer=tokenizer)
    build_corpus(inputs, tmp_path / "raw", tokenizer=tokenizer, tool_wire="raw")
    other = words_tokenizer({**WORDS, "more": len(WORDS)})
    build_corpus(inputs, tmp_path / "b", tokenizer=other)
    with pytest.raises(InputError, match=r"b: made for tokenizer \w+ \(words\), .*a for \w+ \(words\)$"):
        merge_corpora([tmp_path / "a", tmp_path / "b"], tmp_path / "m")
    with pytest.raises(InputError, match="want corpora of one tool wire, got json and raw"):
        merge_corpora([tmp_path / "a", tmp_path / "raw"], tmp_path / "m")
    with pytest.raises(InputError, match=r"b: made for tokenizer \w+ \(words\), the model has \w+ \(words\): build"):
        open_corpus(tmp_path / "b", tokenizer)
    assert named(tmp_path) == {"in", "a", "raw", "b"}


def test_commands(tmp_path: Path, inputs: list[Path], tokenizer: Tokenizer) -> None:
    tokenizer.backend.save(str(tmp_path / "words.json"))
    (tmp_path / "out.txt").write_text("task-1\n\nnobody\n")
    (tmp_path / "note.txt").write_text(prose(8))

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(corpus_command, [str(argument) for argument in arguments])

    a, b, c = (tmp_path / name for name in "abc")
    common = ("--tokenizer", tmp_path / "words.json", "-o")
    built = run("build", tmp_path / "in", *common, a, "--exclude-session", f"@{tmp_path / 'out.txt'}")
    assert re.fullmatch(rf"{a}: 403 tokens of 13 documents, [\d.]+ bytes a token\n", built.stdout)
    assert built.stderr == "not among the inputs: session nobody\n"
    assert run("build", tmp_path / "note.txt", "--kind", "text", *common, b).exit_code == 0
    assert run("merge", a, b, "-o", c).stdout.startswith(f"{c}: 433 tokens of 14 documents")
    told = json.loads(run("info", c, "--json").stdout)
    assert "task-0" in told["sessions"]
    shown = run("info", c).stdout
    assert re.search(r"^kept out +2: nobody \(0 outputs\), task-1 \(5 outputs\)", shown, re.MULTILINE)
    checked = run("verify", c, "--full").stdout
    assert checked == f"{c}: whole, 433 tokens; sizes, checksums and every position were checked\n"
    assert json.loads(run("verify", c, "--json").stdout) == {"corpus": str(c), "whole": True, "full": False}
    damage(c / ORDER, 0, 10**6)
    broken = run("verify", c)
    assert str(broken.exception) == f"{c / ORDER}, entry 0: want a position that a token follows, got 1000000"
    assert broken.exit_code == 1
