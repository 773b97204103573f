"""Caps files: packed and read again, or refused in one line; what a reader is shown of one."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rich.console import Console

from agspec.captable import Bin, CapFile, CapRow, Evaluation, TraceInfo, pack_odds, read_cap_file, read_caps
from agspec.draft.odds import GROUPS, NUM_WEIGHTS, STARTS, OddsState, prior
from agspec.errors import InputError
from agspec.replay.report.caps import caps_page, caps_tables, verdict
from tests.replaying import make_tokenizer
from tests.test_report import Page


def made(**more: Any) -> CapFile:
    rows: dict[Any, CapRow] = {
        "coder": CapRow(cap=3, num_tokens=1200, drafted=(100, 80, 60, 40, 9), accepted=(80, 40, 20, 1, 0)),
        "chat": CapRow(cap=0),
    }
    values = {
        "tokenizer": "0" * 16, "tokenizer_name": "words", "date": "2026-01-01", "tool_wire": "raw", "lookup": "sam",
        "cost": "ratio 0.03", "default": rows["coder"].model_copy(update={"cap": 48}), "roles": rows,
        "traces": (TraceInfo(name="mine", sha256="ab" * 32, num_sessions=2, num_calls=5, num_tokens=1234),),
        "evaluation": evaluation((50, 0.1, 0.9), (400, 0.55, 0.5), (600, 0.95, 0.96)),
        "odds": pack_odds(prior()),
    }  # fmt: skip
    return CapFile.model_validate({**values, **more})


def evaluation(*bins: tuple[int, float, float], brier: float = 0.1, base: float = 0.2) -> Evaluation:
    told = tuple(Bin(num_tokens=n, foretold=foretold, right=right) for n, foretold, right in bins)
    return Evaluation(folds=3, brier=brier, brier_base=base, reliability=told)


def write(folder: Path, change: Callable[[dict[str, Any]], object] = lambda file: None) -> Path:
    file = json.loads(made().to_json())
    change(file)
    path = folder / "caps.json"
    path.write_text(json.dumps(file))
    return path


# --- the file ----------------------------------------------------------------------------------------------------


def test_written_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "caps.json"
    path.write_text(made().to_json())
    assert read_cap_file(path) == made()
    assert '   "drafted": [100, 80, 60, 40, 9],\n' in path.read_text(), "readable: a list a line"
    assert max(len(line) for line in made().to_json(odds=False).splitlines()) < 120
    assert "odds" not in json.loads(made().to_json(odds=False))


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 99), st.floats(0, 6), st.floats(0, 1e7))
def test_any_weights_are_packed(seed: int, weight: float, evidence: float) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, weight, NUM_WEIGHTS).astype(np.float32)
    squares = (1 + rng.exponential(evidence, NUM_WEIGHTS)).astype(np.float32)
    state = made(odds=pack_odds(OddsState(weights, squares))).odds_state()
    assert state is not None
    np.testing.assert_allclose(state.weights, weights, rtol=6e-4, atol=6e-4)
    np.testing.assert_allclose(state.squares.clip(max=65504), squares.clip(max=65504), rtol=6e-4, atol=6e-3)


@settings(deadline=None, max_examples=30)
@given(arrays(np.float32, 60, elements=st.floats(-8, 8, width=32)))
def test_each_group_keeps_its_place(some: Any) -> None:
    weights = np.resize(some, NUM_WEIGHTS)
    odds = pack_odds(OddsState(weights, np.ones(NUM_WEIGHTS, np.float32)))
    for name, group in odds["groups"].items():
        at = list(GROUPS).index(name)
        assert np.shape(group["weights"]) == GROUPS[name]
        np.testing.assert_allclose(np.ravel(group["weights"]), weights[STARTS[at] : STARTS[at + 1]], atol=6e-4)


def hashed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def odds_of(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda file: file["odds"].update(values)


def source(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda file: file["odds"]["groups"]["source"].update(values)


SIZE = 4 * (2 * 4096 + 6 * 32768)
BROKEN: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda file: file.update(agspec_caps=1), "want a caps file of format 2, got format 1: calibrate again"),
    (lambda file: file.update(agspec_caps=1, roles=3), "want a caps file of format 2, got format 1: calibrate again"),
    (lambda file: file.pop("default"), "default: Field required, got {"),
    (lambda file: file["roles"].update(wizard={"cap": 3}), "roles.wizard.[key]: Input should be 'coder', 'planner'"),
    (lambda file: file["default"].update(cap=129), "default.cap: Input should be less than or equal to 128, got 129"),
    (lambda file: file["default"].update(factor=float("nan")), "default.factor: Input should be"),
    (lambda file: file["default"].update(factor=float("inf")), "default.factor: Input should be"),
    (lambda file: file["default"].update(accepted=[1]), "default: want as many accepted as drafted counts, none larg"),
    (lambda file: file["default"].update(drafted=[1] * 5), "default: want as many accepted as drafted counts, none"),
    (lambda file: file["evaluation"].update(reliability=[]), "evaluation.reliability: Tuple should have at least 1"),
    (source(weights=[1, 2]), "odds.groups.source.weights: want numbers of shape 5, got shape 2"),
    (source(weights=[[1], [1, 2]]), "odds.groups.source.weights: want numbers of shape 5, got others"),
    (source(evidence=[{}] * 5), "odds.groups.source.evidence: want numbers of shape 5, got others"),
    (source(evidence=3), "odds.groups.source.evidence: Input should be a valid array, got 3"),
    (source(weights=[float("nan")] + [0] * 4), "odds: want weights and evidence under 1e+30, evidence above 0"),
    (source(weights=[1e300] + [0] * 4), "odds: want weights and evidence under 1e+30, evidence above 0"),
    (source(weights=[None] * 5), "odds: want weights and evidence under 1e+30, evidence above 0"),
    (source(evidence=[0] * 5), "odds: want weights and evidence under 1e+30, evidence above 0"),
    (lambda file: file["odds"]["groups"].pop("source"), "odds.groups: want source, length, chance, position, "),
    (odds_of(hashed="\N{SNOWMAN}"), "odds.hashed: string argument should contain only ASCII characters"),
    (odds_of(hashed="abc"), "odds.hashed: Incorrect padding"),
    (odds_of(hashed="abcd"), "odds.hashed: Error -3 while decompressing data: "),
    (odds_of(hashed=hashed(b"12")), f"odds.hashed: want {SIZE} bytes, got 2"),
    (odds_of(hashed=hashed(b"\0" * (1 << 25))), f"odds.hashed: want {SIZE} bytes, got {1 << 24}"),
    (odds_of(hashed=hashed(b"\xff" * SIZE)), "odds: want weights and evidence under 1e+30, evidence above 0"),
]


@pytest.mark.parametrize(("change", "line"), BROKEN, ids=[line[:50] for _, line in BROKEN])
def test_broken_files_are_one_line(
    change: Callable[[dict[str, Any]], object], line: str, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    path = write(tmp_path, change)
    with pytest.raises(InputError) as caught:
        read_cap_file(path)
    assert str(caught.value).startswith(f"{path}: {line}")
    assert "\n" not in str(caught.value)
    assert not recwarn.list


def test_what_is_no_caps_file(tmp_path: Path) -> None:
    path = tmp_path / "caps.json"
    path.write_text('{"agspec_caps": ')
    with pytest.raises(InputError, match=r"^\S+/caps.json: file: Invalid JSON: EOF while parsing[^\n]*$"):
        read_cap_file(path)
    with pytest.raises(InputError, match=r": want a caps file, got: Is a directory$"):
        read_cap_file(tmp_path)


def test_a_file_for_other_token_ids_is_refused(tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    with pytest.raises(InputError) as caught:
        read_caps(write(tmp_path), tokenizer)
    told = f"made for tokenizer {'0' * 16}, the model has {tokenizer.fingerprint} (words): calibrate again"
    assert str(caught.value) == f"{tmp_path}/caps.json: {told}"


# --- what is shown of it -----------------------------------------------------------------------------------------


def shown(file: CapFile) -> list[str]:
    out = StringIO()
    console = Console(file=out, width=120, color_system=None)
    for part in caps_tables(file):
        console.print(part)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_tables_tell_caps_survival_and_reliability() -> None:
    lines = shown(made())
    assert lines[0] == f"Caps for tokenizer words ({'0' * 16}), tool wire raw, cost ratio 0.03, lookup sam, " \
        "made on 2026-01-01"  # fmt: skip
    assert lines[1] == "  mine: 2 sessions, 5 calls, 1,234 output tokens, sha256 abababababababab"
    assert ["coder", "1,200", "100", "3", "1.41", "79%", "50%", "5%", "-", "-", "-"] in [line.split() for line in lines]
    assert ["chat", "0", "0", "0", "-", "-", "-", "-", "-", "-", "-"] in [line.split() for line in lines]
    assert any(line.startswith("any other role ") and " 48 " in line for line in lines)
    at = lines.index("coder: cap 3")
    assert [line[6:] for line in lines[at + 1 : at + 7]] == ["▁", "█", "██▃", "███▂·", "──^──", "1"]
    assert "chat: cap 0" not in lines, "nothing was drafted"
    assert any("The odds hold: foretold and right lie at most 5 points apart" in line for line in lines)
    assert any(re.fullmatch(r" +55% +50% +400  █{12} \|", line) for line in lines)


def test_long_drafts_fit_the_terminal() -> None:
    row = CapRow(cap=128, drafted=(30,) * 128, accepted=(30,) * 128)
    trace = TraceInfo(name="t" * 200, sha256="", num_sessions=1, num_calls=1, num_tokens=1)
    lines = shown(made(default=row, roles={"summarizer": row}, traces=(trace,), evaluation=None))
    assert max(map(len, lines)) <= 120
    assert "summarizer: cap 128" in lines
    assert "Not evaluated on sessions held out." in lines


def test_a_bare_file_is_shown() -> None:
    bare = CapFile(tokenizer="0" * 16, default=CapRow(cap=5))
    assert shown(bare)[0] == f"Caps for tokenizer {'0' * 16}. It holds no odds: each tenant starts from the plain ones."
    Page(caps_page(bare, "bare"))


@pytest.mark.parametrize(
    ("found", "holds", "said"),
    [
        (evaluation((99, 0.5, 0.9)), None, "Too little to tell: no tenth of chance has 100 drafted tokens"),
        (evaluation((100, 0.5, 0.9)), False, "The odds do not hold: foretold and right lie at most 40 points apart"),
        (evaluation((99, 0.1, 0.9), (100, 0.5, 0.6)), True, "The odds hold: foretold and right lie at most 10 points"),
        (evaluation((500, 0.5, 0.5), brier=0.25, base=0.25), False, "The odds do not hold: they tell no more than"),
    ],
)
def test_verdict(found: Evaluation, holds: bool | None, said: str) -> None:
    assert verdict(found).holds is holds
    assert verdict(found).sentence.startswith(said)


def test_page_is_self_contained_and_marks_the_cap() -> None:
    evil = '"><script>alert(1)</script>'
    trace = TraceInfo(name=evil, sha256="ab", num_sessions=1, num_calls=1, num_tokens=1)
    text = caps_page(made(tokenizer_name=evil, traces=(trace,)), evil)
    assert "<script" not in text
    page = Page(text)
    assert not re.search(r"<img|<link|@import|url\(|https?:", text)
    assert [len(page.all(kind)) for kind in ("circle", "details")] == [3, 2]
    words = " ".join(page.words)
    for told in (
        "cap 3",
        "cap 48",
        "Do the odds hold?",
        "position 2: 50% of 80",
        "55% foretold, 50% right, 400 tokens",
    ):
        assert told in words
    assert caps_page(made(), "t") == caps_page(made(), "t")
