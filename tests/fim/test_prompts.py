"""Fill-in-the-middle prompts: golden cases of each family, ids where a tokenizer is at hand, text that stays text."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers

from agspec.errors import InputError
from agspec.fim.families import detect, families, family_of
from agspec.fim.prompt import OtherFile, build, plain
from agspec.fim.vocabulary import FimVocabulary
from agspec.tokens import Tokenizer, load_tokenizer
from tests.support import SHARED, needs_shared

CASES = tomllib.loads((Path(__file__).parents[1] / "cases" / "fim.toml").read_text("utf-8"))["case"]
QWEN = {"<|fim_prefix|>": 151659, "<|fim_middle|>": 151660, "<|fim_suffix|>": 151661, "<|repo_name|>": 151663,
        "<|file_sep|>": 151664}  # fmt: skip


@cache
def qwen_vocabulary() -> FimVocabulary:
    return FimVocabulary(load_tokenizer(SHARED / "tokenizers" / "qwen2.tokenizer.json"), family_of("qwen2.5-coder"))


@pytest.fixture(scope="module")
def qwen() -> FimVocabulary:
    return qwen_vocabulary()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['family']} {case['name']}")
def test_golden(case):
    others = [OtherFile(path, text) for path, text in case.get("others", [])]
    prompt = build(
        family_of(case["family"]), prefix=case["prefix"], suffix=case["suffix"], path=case.get("path"), others=others,
        order=case.get("order"),
    )  # fmt: skip
    assert "".join(piece.text for piece in prompt.pieces) == case["prompt"]


def test_every_family_has_a_golden_case_and_says_where_its_markers_are_from():
    assert {case["family"] for case in CASES} == {family.name for family in families()}
    assert all(family.source for family in families())
    assert len(families()) == 16


@needs_shared
def test_H1_ids_of_qwen_and_text_that_looks_like_a_marker(qwen):
    """Continue#2330: the tokenizer's own added tokens; a user's <|fim_middle|> is not one of them."""
    prompt = build(family_of("qwen2.5-coder"), prefix="a<|fim_middle|>", suffix="<|file_sep|>b", vocabulary=qwen)
    ids = prompt.ids
    for marker in ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"):
        assert ids.count(QWEN[marker]) == 1
    assert QWEN["<|file_sep|>"] not in ids
    assert (ids[0], ids[-1]) == (QWEN["<|fim_prefix|>"], QWEN["<|fim_middle|>"])
    assert prompt.bos == ()
    assert set(prompt.stop_ids) >= {151643, 151645, *QWEN.values(), 151662}


@needs_shared
@settings(deadline=None)
@given(prefix=st.text(max_size=30), suffix=st.text(max_size=30))
def test_H2_no_text_makes_a_marker(prefix, suffix):
    ids = build(family_of("qwen2.5-coder"), prefix=prefix, suffix=suffix, vocabulary=qwen_vocabulary()).ids
    assert sum(token >= 151643 for token in ids) == 3


@needs_shared
def test_H15_a_files_name_stands_where_the_family_wants_it(qwen):
    prompt = build(family_of("qwen2.5-coder"), prefix="x", suffix="y", path="b.py", others=[OtherFile("a.py", "z")],
                   repository="r", vocabulary=qwen)  # fmt: skip
    told = [(piece.text, piece.marker) for piece in prompt.pieces]
    assert told == [
        ("<|repo_name|>", True), ("r\n", False), ("<|file_sep|>", True), ("a.py\nz\n", False), ("<|file_sep|>", True),
        ("b.py\n", False), ("<|fim_prefix|>", True), ("x", False), ("<|fim_suffix|>", True), ("y", False),
        ("<|fim_middle|>", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("added", "model", "family"),
    [
        (["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>"], "starcoder",
         "qwen2.5-coder"),
        (["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>"], "",
         "qwen3-coder"),
        (["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_separator|>"], "qwen2.5-coder", "codegemma"),
        (["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|end_of_text|>"], "", "granite4"),
        (["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<reponame>", "<file_sep>", "<|im_end|>"], "", "codeqwen1.5"),
        (["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<filename>", "<reponame>", "<gh_stars>"], "", "starcoder"),
        (["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<filename>", "<reponame>", "<gh_stars>"], "ibm/granite-8b",
         "granite-code"),
        (["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<filename>", "<reponame>", "<|im_end|>"], "", "mellum"),
        (["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>"], "", "starcoder2"),
        (["<fim-prefix>", "<fim-suffix>", "<fim-middle>"], "", "santacoder"),
        (["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"], "my-finetune", "deepseek-coder"),
        (["▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>"], "", "codellama"),
        (["[SUFFIX]", "[PREFIX]", "[MIDDLE]"], "", "codestral"),
        (["<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"], "", "seed-coder"),
        (["<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "<|user|>"], "", "codegeex4"),
    ],
)  # fmt: skip
def test_H1_tokens_tell_the_family_and_names_only_break_ties(added, model, family):
    assert detect(added, model=model).name == family


def test_unknown_is_an_error_that_says_what_was_found():
    with pytest.raises(InputError, match=r"m: want the added tokens of a known family, found no fill-in-the-middle"):
        detect(["<|im_end|>"], model="m")
    with pytest.raises(InputError, match=r"found <my-fim>; name one with --family"):
        detect(["<my-fim>"])
    with pytest.raises(InputError, match=r"family: want one of qwen2.5-coder, .*, rwkv, got gpt"):
        family_of("gpt")
    with pytest.raises(InputError, match=r"order: want psm with qwen2.5-coder, got spm"):
        build(family_of("qwen2.5-coder"), prefix="", suffix="", order="spm")


def sentencepiece(pieces: dict[str, int], markers: dict[str, int]) -> Tokenizer:
    """A tokenizer with a dummy space before each text, in which these pieces have their published ids."""
    size = max([*pieces.values(), *markers.values()]) + 1
    by_id = {number: piece for piece, number in {"<unk>": 0, **pieces, **markers}.items()}
    vocabulary = [(by_id.get(i, f"<unused{i}>"), -1.0 if i in pieces.values() else -100.0) for i in range(size)]
    backend = tokenizers.Tokenizer(models.Unigram(vocabulary, unk_id=0, byte_fallback=False))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Metaspace()
    added = [{"id": number, "content": text, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False} for text, number in markers.items()]  # fmt: skip
    spec = {**json.loads(backend.to_str()), "added_tokens": added}
    return Tokenizer("small", tokenizers.Tokenizer.from_str(json.dumps(spec)), spec)


def test_H4_H5_codellama_has_one_bos_and_no_space_before_the_suffix():
    """llama.cpp#3503: the suffix's first tokens are those of its text, without SentencePiece's dummy space."""
    tokenizer = sentencepiece(
        {"▁def": 822, "\n": 13, "▁return": 736, "▁result": 1121, "▁": 29871, "☺": 31000, "return": 2457},
        {"<s>": 1, "▁<PRE>": 32007, "▁<SUF>": 32008, "▁<MID>": 32009, "▁<EOT>": 32010},
    )
    vocabulary = FimVocabulary(tokenizer, family_of("codellama"))
    prompt = build(family_of("codellama"), prefix="def", suffix="\n return result\n", vocabulary=vocabulary)
    assert prompt.ids == [1, 32007, 822, 32008, 13, 736, 1121, 13, 32009]
    assert vocabulary.text("return") == [736], "a prefix keeps its dummy space, as the reference has it"
    assert vocabulary.text("return", after_marker=True) == [2457]
    spm = build(family_of("codellama"), prefix="def", suffix="\n", order="spm", vocabulary=vocabulary)
    assert spm.ids == [1, 32007, 32008, 13, 32009, 822]
    assert prompt.stop_ids == (32007, 32008, 32009, 32010)


def test_codestral_has_no_middle_and_keeps_its_markers_for_an_empty_suffix():
    """mistral-common, tests/test_fim_tokenizer.py."""
    tokenizer = sentencepiece(
        {"▁def": 10, "▁f(": 11, "return": 12, "▁a": 13, "▁+": 14, "▁b": 15, "▁": 16, "☺": 17},
        {"<s>": 1, "</s>": 2, "[PREFIX]": 3, "[MIDDLE]": 4, "[SUFFIX]": 5},
    )
    vocabulary = FimVocabulary(tokenizer, family_of("codestral"))
    prompt = build(family_of("codestral"), prefix="def f(", suffix="return a + b", vocabulary=vocabulary)
    assert prompt.ids == [1, 5, 12, 13, 14, 15, 3, 10, 11]
    assert build(family_of("codestral"), prefix="def f(", suffix="", vocabulary=vocabulary).ids == [1, 5, 3, 10, 11]


def test_a_marker_that_the_tokenizer_lacks_is_an_error():
    vocabulary = FimVocabulary(load_tokenizer("embedded"), family_of("qwen2.5-coder"))
    with pytest.raises(
        InputError, match=r"embedded: want the added token <\|fim_prefix\|> \(qwen2.5-coder\), found none"
    ):
        build(family_of("qwen2.5-coder"), prefix="a", suffix="b", vocabulary=vocabulary)
    assert plain("a b", vocabulary=vocabulary, family=family_of("qwen2.5-coder")).ids == vocabulary.text("a b")


@needs_shared
def test_the_command_shows_pieces_ids_and_stops(tmp_path):
    for name, text in (("p", "def f(\n"), ("s", ") -> int:\n"), ("other.py", "x = 1\n")):
        (tmp_path / name).write_text(text)
    files = ["--prefix-file", str(tmp_path / "p"), "--suffix-file", str(tmp_path / "s")]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "agspec.cli", "fim", "render", *files, *words]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    told = json.loads(run("--tokenizer", str(SHARED / "tokenizers" / "qwen2.tokenizer.json"), "--json").stdout)
    assert (told["family"], told["order"]) == ("qwen2.5-coder", "psm")
    assert [piece["kind"] for piece in told["pieces"]] == ["marker", "text", "marker", "text", "marker"]
    assert told["pieces"][0] == {"kind": "marker", "text": "<|fim_prefix|>", "ids": [151659]}
    assert "<|file_sep|>" in told["stops"]
    told = json.loads(
        run("--family", "mellum", "--path", "a.py", "--context", str(tmp_path / "other.py"), "--json").stdout
    )
    assert [piece["text"] for piece in told["pieces"]] == [
        "<filename>", f"{tmp_path / 'other.py'}\nx = 1\n\n", "<filename>", "a.py\n", "<fim_suffix>", ") -> int:\n",
        "<fim_prefix>", "def f(\n", "<fim_middle>",
    ]  # fmt: skip
    assert {piece["ids"] for piece in told["pieces"]} == {None}
    assert "marker  [SUFFIX]" in run("--family", "codestral").stdout
    for words, line in (
        (("--family", "gpt"), "family: want one of"),
        ((), "want --family or --tokenizer, got neither"),
    ):
        done = run(*words)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert line in done.stderr
