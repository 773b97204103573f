"""Corpora on disk: built whole, resumed, merged, with sessions kept out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agspec.corpus import TOKENS, mapped, open_corpus, read_info
from agspec.draft.suffix_array import SEPARATOR
from agspec.errors import InputError
from agspec.replay.corpus import build, build_corpus, merge_corpora, verify_corpus
from agspec.replay.corpus import inputs as corpus_inputs
from agspec.tokens import Tokenizer
from tests.corpora import WORDS, content, named, prose, trace_file, two_traces, words_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return words_tokenizer(WORDS)


@pytest.fixture
def inputs(tmp_path: Path) -> list[Path]:
    return two_traces(tmp_path)


def test_a_corpus_holds_the_outputs_and_says_so(tmp_path: Path, inputs: list[Path], tokenizer: Tokenizer) -> None:
    target = tmp_path / "corpus"
    made = build_corpus([tmp_path / "in"], target, tokenizer=tokenizer)
    assert made == read_info(target) == verify_corpus(target) == verify_corpus(target, full=True)
    assert (made.num_documents, made.num_tokens) == (18, 18 * 31)
    assert [Path(source.name).name for source in made.sources] == ["one.jsonl", "two.jsonl.gz"]
    assert [source.num_tokens for source in made.sources] == [12 * 31, 6 * 31]
    assert made.sessions == ("task-0", "task-1", "task-2", "task-1#2", *(f"task-{i}" for i in range(101, 106)))
    assert (made.tokenizer, made.tool_wire, made.excluded) == (tokenizer.fingerprint, "json", {})
    tokens = mapped(target / TOKENS)
    assert tokens[1:31].tolist() == tokenizer.encode(prose(0)).tolist()
    assert tokens[31:33].tolist() == [tokenizer.end_id, SEPARATOR]
    assert named(tmp_path) == {"in", "corpus"}
    store = open_corpus(target, tokenizer)
    text = tokenizer.encode(prose(3))
    found = store.draft(text[:20], limit=8, floor=0.02)
    assert found is not None
    assert (found.match_length, found.tokens.tolist()) == (20, text[20:28].tolist())


def test_same_inputs_same_bytes_whatever_the_shards(tmp_path: Path, inputs: list[Path], tokenizer: Tokenizer,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    for name in ("a", "b"):
        build_corpus(inputs, tmp_path / name, tokenizer=tokenizer)
    monkeypatch.setattr(build, "BATCH", 50)
    build_corpus(inputs, tmp_path / "c", tokenizer=tokenizer, shard=60)
    assert content(tmp_path / "a") == content(tmp_path / "b") == content(tmp_path / "c")


def test_an_interrupted_build_goes_on(tmp_path: Path, inputs: list[Path], tokenizer: Tokenizer,
                                      monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(build, "BATCH", 50)
    build_corpus(inputs, tmp_path / "whole", tokenizer=tokenizer, shard=60)
    left = iter(range(7))

    def stop(done: int, total: int, what: str) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    target = tmp_path / "corpus"
    with pytest.raises(KeyboardInterrupt):
        build_corpus(inputs, target, tokenizer=tokenizer, shard=60, progress=stop)
    work = tmp_path / ".corpus.building"
    manifest = json.loads((work / "manifest.json").read_text())
    assert len(manifest["runs"]) == 3
    assert not target.exists()
    with pytest.raises(InputError, match=r"begun by another command \(excluded sessions differ\): finish or remove it"):
        build_corpus(inputs, target, tokenizer=tokenizer, shard=60, exclude=["task-1"])
    for torn in (work / "corpus" / TOKENS, work / "runs.i32"):
        with torn.open("ab") as file:
            file.write(b"half of a run")
    seen: list[int] = []
    encode_all = Tokenizer.encode_all

    def counted(self: Tokenizer, texts: Sequence[str]) -> Any:
        seen.extend(range(len(texts)))
        return encode_all(self, texts)

    monkeypatch.setattr(Tokenizer, "encode_all", counted)
    build_corpus(inputs, target, tokenizer=tokenizer, shard=60)
    assert content(target) == content(tmp_path / "whole")
    assert len(seen) == 18 - manifest["num_seen"]
    assert named(tmp_path) == {"in", "whole", "corpus"}


def test_interrupted_while_merging(tmp_path: Path, inputs: list[Path], tokenizer: Tokenizer) -> None:
    def stop(done: int, total: int, what: str) -> None:
        if what == "merging":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_corpus(inputs, tmp_path / "a", tokenizer=tokenizer, progress=stop)
    build_corpus(inputs, tmp_path / "a", tokenizer=tokenizer)
    build_corpus(inputs, tmp_path / "b", tokenizer=tokenizer)
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_one_build_at_a_time(tmp_path: Path, inputs: list[Path], tokenizer: Tokenizer) -> None:
    def again(done: int, total: int, what: str) -> None:
        build_corpus(inputs, tmp_path / "a", tokenizer=tokenizer)

    with pytest.raises(InputError, match=r"\.a\.building: want no other build of this corpus at work, found one"):
        build_corpus(inputs, tmp_path / "a", tokenizer=tokenizer, progress=again)


def test_changed_inputs_are_another_command(tmp_path: Path, inputs: list[Path], tokenizer: Tokenizer) -> None:
    def stop(done: int, total: int, what: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_corpus(inputs, tmp_path / "a", tokenizer=tokenizer, progress=stop)
    trace_file(inputs[0], [("task-0", prose(55))])
    with pytest.raises(InputError, match=r"\.a\.building: holds a corpus begun by another command \(inputs differ\)"):
        build_corpus(inputs, tmp_path / "a", tokenizer=tokenizer)
    shutil.rmtree(tmp_path / ".a.building")
    build_corpus(inputs, tmp_path / "a", tokenizer=tokenizer)


def test_merge_is_a_build_of_all(tmp_path: Path, inputs: list[Path], tokenizer: Tokenizer) -> None:
    for name, some in (("a", inputs[:1]), ("b", inputs[1:]), ("all", inputs)):
        build_corpus(some, tmp_path / name, tokenizer=tokenizer)
    merge_corpora([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    assert content(tmp_path / "merged") == content(tmp_path / "all")
    verify_corpus(tmp_path / "merged", full=True)
    (tmp_path / "note.txt").write_text(prose(8))
    build_corpus([tmp_path / "note.txt"], tmp_path / "text", tokenizer=tokenizer, kind="text")
    info = merge_corpora([tmp_path / "text", tmp_path / "merged"], tmp_path / "both")
    assert info.tool_wire == "json"
    assert info.num_documents == 19


def test_excluded_sessions_stay_out(tmp_path: Path, inputs: list[Path], tokenizer: Tokenizer) -> None:
    info = build_corpus(inputs, tmp_path / "a", tokenizer=tokenizer, exclude=["task-1", "task-101", "nobody"])
    assert info.excluded == {"nobody": 0, "task-1": 5, "task-101": 1}
    assert not {"task-1", "task-1#2", "task-101"} & set(info.sessions)
    assert info.num_documents == 12
    text = tokenizer.encode(prose(1))
    found = open_corpus(tmp_path / "a", tokenizer).draft(text[:20], limit=8, floor=0.02)
    assert found is None or found.match_length < 5
    build_corpus(inputs[1:], tmp_path / "b", tokenizer=tokenizer, exclude=["task-102"])
    merged = merge_corpora([tmp_path / "a", tmp_path / "b"], tmp_path / "m")
    assert merged.excluded == {"nobody": 0, "task-1": 5}, "the others are in the second one"


def test_text_and_other_recordings(tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    (tree / "below").mkdir(parents=True)
    (tree / ".git").mkdir()
    (tree / "a.py").write_text(prose(1, 50))
    (tree / "below" / "b.txt").write_text(prose(2))
    (tree / "empty").write_text("")
    (tree / ".git" / "c").write_text(prose(3))
    (tree / "image").write_bytes(b"\xff\xd8\xff")
    (tree / "object").write_bytes(b"w1 \0 w2")
    info = build_corpus([tree], tmp_path / "a", tokenizer=tokenizer, kind="text")
    assert (info.num_documents, info.num_tokens, info.sessions, info.tool_wire) == (2, 80, (), None)
    assert [source.name for source in info.sources] == [str(tree)]
    with pytest.raises(InputError, match="image: want UTF-8 text, got byte 0xff"):
        build_corpus([tree / "image"], tmp_path / "b", tokenizer=tokenizer, kind="text")
    with pytest.raises(InputError, match="object: want UTF-8 text, got byte 0x00"):
        build_corpus([tree / "object"], tmp_path / "b", tokenizer=tokenizer, kind="text")
    monkeypatch.setattr(corpus_inputs, "CHUNK", 10)
    accented = "w1 w2 \u00e9\u00e9\u00e9 w3 w4 \u00e9"
    (tmp_path / "long.txt").write_text(accented)
    found = corpus_inputs.documents("text", corpus_inputs.inputs("text", [tmp_path / "long.txt"]), "json")
    assert "".join(document.text for document in found) == accented
    record = {"request": {"messages": [{"role": "user", "content": "go"}]}, "session": "s",
              "response": {"choices": [{"message": {"role": "assistant", "content": prose(4)}}]}}  # fmt: skip
    (tmp_path / "log.jsonl").write_text(json.dumps(record) + "\n")
    info = build_corpus([tmp_path / "log.jsonl"], tmp_path / "c", tokenizer=tokenizer, kind="openai")
    assert (info.num_tokens, info.sessions) == (31, ("s",))


def test_more_tokens_than_positions(tmp_path: Path, inputs: list[Path], tokenizer: Tokenizer,
                                    monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(build, "MAX_TOKENS", 100)
    with pytest.raises(InputError, match=r"want at most 100 tokens in a corpus \(positions are int32\), got more"):
        build_corpus(inputs, tmp_path / "a", tokenizer=tokenizer)
