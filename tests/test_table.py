"""``make table``: sessions as families, sweeps against replays, the choice of settings, scores, the whole of a log."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agspec.replay.methods import METHODS
from agspec.replay.plan import PlannedCall
from agspec.replay.simulate import CALL_COUNTS, replay
from agspec.replay.trace import Call, Message, Output, Trace
from agspec.scaffold import load_profiles
from agspec.settings import Settings
from agspec.tokens import as_tokens, load_tokenizer
from benchmarks.table import __main__ as command
from benchmarks.table import families, jobs
from benchmarks.table.ablations import ABLATIONS, VIEWS
from benchmarks.table.counts import speedup, total
from benchmarks.table.families import Family, by_chat, load_family, names, raw_only
from benchmarks.table.rest import LONGEST_DRAFT, LONGEST_MATCH, RestText
from benchmarks.table.score import Measured, compare
from benchmarks.table.sweep import TEXTS, sweep
from benchmarks.table.tune import DEFAULTS, GRIDS, choose, text_of
from tests.replaying import END, call, make_tokenizer
from tests.support import SHARED, needs_arctic, needs_shared


def random_calls(seed: int, n: int = 12) -> list[PlannedCall]:
    """Sessions that repeat themselves and each other."""
    rng = np.random.default_rng(seed)
    phrases = [rng.integers(0, 98, 12) for _ in range(6)]
    calls = []
    for i in range(n):
        prompt, tape = (np.concatenate([phrases[k] for k in rng.integers(6, size=size)]) for size in (5, 3))
        noise = np.where(rng.random(tape.size) < 0.1, rng.integers(0, 98, tape.size), tape)
        calls.append(call(prompt.astype(np.int32), np.append(noise, END).astype(np.int32), session=f"s{i // 3}"))
    return calls


def chats(*requests: tuple[list[str], str]) -> Trace:
    calls = [
        Call(
            session="log",
            messages=tuple(Message(role="user", content=text) for text in shown),
            output=Output(content=out),
        )
        for shown, out in requests
    ]
    return Trace(name="log", kind="aider", calls=tuple(calls))


def test_a_log_is_split_into_chats() -> None:
    log = chats(
        (["a"], "first answer"),
        (["a", "first answer", "b"], "second answer"),
        (["second answer\n\n# rules of the editor"], "an edit"),
        (["c"], "third answer"),
        (["a", "first answer", "b"], "an older chat is not taken up again"),
        (["d"], ""),
        (["d"], "after an empty answer"),
    )
    sessions = [call.session for call in by_chat(log).calls]
    assert sessions == ["chat 1"] * 3 + ["chat 2", "chat 3", "chat 4", "chat 5"]


def test_halves_take_every_other_session() -> None:
    calls = [call([1], [2, END], session=session) for session in "abcab"]
    family = Family("f", "f", tuple(calls))
    assert [c.session for c in family.half(0)] == ["a", "c", "a"]
    assert [c.session for c in family.half(1)] == ["b", "b"]
    assert family.output_tokens == 10
    assert not family.in_mean


def test_raw_profiles_keep_files_as_they_are() -> None:
    for scaffold in raw_only(load_profiles()).by_name.values():
        for wire in ("json", "raw"):
            assert {form.name for form in scaffold.forms(wire)} <= {"raw"}


@pytest.mark.parametrize("method", ["ngram", "sam", pytest.param("suffix", marks=needs_arctic)])
def test_a_sweep_counts_as_replay_does(method: str) -> None:
    calls = random_calls(1)
    tokenizer = make_tokenizer()
    for text in dict.fromkeys(text_of(method, values) for values in GRIDS[method]):
        grid = [values for values in GRIDS[method] if text_of(method, values) == text]
        for values, counts in zip(grid, sweep(TEXTS[text](), grid, calls), strict=True):
            told = Settings.model_validate(values)
            tally = replay(METHODS[method](told, tokenizer), calls, max_draft=told.max_draft)
            assert total(counts.values()) == tuple(getattr(tally, key) for key in CALL_COUNTS)
            assert tally.num_accepted_tokens > 50


def test_calls_are_counted_one_by_one() -> None:
    calls = random_calls(2)
    by_call: list[Counter[str]] = []
    tally = replay(METHODS["sam"](Settings(), make_tokenizer()), calls, max_draft=9, by_call=by_call)
    assert [counts["num_tokens"] for counts in by_call] == [planned.tape.size for planned in calls]
    for key in CALL_COUNTS:
        assert sum(counts[key] for counts in by_call) == getattr(tally, key)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=30), min_size=1, max_size=4))
def test_rest_is_the_most_frequent_continuation_of_the_longest_match(outputs: list[list[int]]) -> None:
    text = RestText()
    for i, output in enumerate(outputs):
        planned = call([0], output, session=f"s{i}")
        text.start(planned)
        for end in range(1, len(output) + 1):
            context = [0, *output[:end]]
            draft = text.draft(as_tokens(context), {"rest_length": LONGEST_DRAFT, "max_draft": 64})
            assert draft.tolist() == rest_by_hand(outputs[:i], context)
        text.finish()


def rest_by_hand(store: list[list[int]], context: list[int]) -> list[int]:
    for n in range(min(LONGEST_MATCH, len(context)), 0, -1):
        ends = [(k, e) for k, out in enumerate(store) for e in range(n, len(out) + 1) if out[e - n : e] == context[-n:]]
        if ends:
            break
    else:
        return []
    path: list[int] = []
    while len(path) < LONGEST_DRAFT:
        following = Counter(store[k][e] for k, e in ends if e < len(store[k]))
        if not following:
            break
        path.append(min(following, key=lambda token: (-following[token], token)))
        ends = [(k, e + 1) for k, e in ends if e < len(store[k]) and store[k][e] == path[-1]]
    return path


def test_defaults_are_in_the_grids() -> None:
    for method, values in DEFAULTS.items():
        assert values in GRIDS[method]
        assert all(GRIDS[method].count(one) == 1 for one in GRIDS[method])


def test_the_fastest_setting_of_the_training_half_is_chosen() -> None:
    grid = [{"sam_length": 4.0}, {"sam_length": 16.0}]
    measured = [{"a": (60, 100, 60, 40), "b": (10, 100, 0, 90)}, {"a": (40, 100, 400, 60), "b": (100, 100, 900, 0)}]
    assert choose(grid, measured, ["a"], 0.01) == grid[1], "long drafts pay where verification is cheap"
    assert choose(grid, measured, ["a"], 0.4) == grid[0]
    assert choose(grid, measured, ["b"], 0.01) == grid[0], "the other half has no say"


def measured(name: str, gain: float, *, in_mean: bool = True, base: str = "base") -> Measured:
    rng = np.random.default_rng(7)
    suffix = {f"s{i}": (int(rng.integers(50, 90)), 100, 40, 20) for i in range(8)}
    ours = {key: (round(counts[0] / (1 + gain)), *counts[1:]) for key, counts in suffix.items()}
    return Measured(name, base, 0.0, in_mean, {"agspec": ours, "suffix": suffix})


def test_bootstrap_is_the_same_each_time_and_paired() -> None:
    one, other = measured("json", 0.1), measured("raw", 0.1)
    assert (one.gains("agspec", "suffix") == other.gains("agspec", "suffix")).all(), "same sessions, same draws"
    assert (one.drawn("suffix") != measured("json", 0.1, base="another").drawn("suffix")).any()
    assert one.drawn("suffix").std() > 10 * one.gains("agspec", "suffix").std(), "both methods see the same draw"
    found = compare([one, other], "agspec", "suffix")
    assert found["interval"][0] <= found["mean"] <= found["interval"][1]
    assert found == compare([one, other], "agspec", "suffix")


def test_small_families_are_not_in_the_mean() -> None:
    found = compare([measured("a", 0.1), measured("b", -0.5, in_mean=False)], "agspec", "suffix")
    assert (found["num_settings"], found["num_faster"]) == (1, 1)
    assert found["mean"] == found["worst"] == pytest.approx(0.1, abs=0.02)
    assert found["worst_setting"] == "a at 0"


def test_prices() -> None:
    assert speedup((4, 10, 11, 6), 0.1) == pytest.approx(10 * 1.1 / (4 * 1.1 + 0.1 * 11))
    assert total([]) == (0, 0, 0, 0)


def test_switches_name_settings_that_exist() -> None:
    for one in (*ABLATIONS.values(), *VIEWS.values()):
        assert set(one.values or {}) <= set(Settings.model_fields)


@pytest.fixture
def small_log(tmp_path: Path) -> Path:
    """Six aider chats with nearly the same answer, laid out as the shared traces are; and a tokenizer for them."""
    rng = np.random.default_rng(0)
    log, phrase = [], " ".join(str(int(t)) for t in rng.integers(0, 90, 40))
    for i in range(6):
        log += [f"TO LLM 2026-01-0{i + 1}T00:00:00", f"USER {i}", "LLM RESPONSE 2026-01-01T00:00:00"]
        log += [f"ASSISTANT {90 + i} {phrase} {i}"]
    folder = tmp_path / "traces" / "aider-llm-history"
    folder.mkdir(parents=True)
    (folder / "chats.aider.llm.history").write_text("\n".join(log) + "\n")
    make_tokenizer().backend.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["table", *map(str, arguments)])
    command.main()


@needs_arctic
def test_the_whole_table_of_a_small_log(
    small_log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = jobs.Place(small_log / "traces", small_log / "tokenizer.json", small_log / "cache")
    monkeypatch.setattr(command, "write_whole", lambda *_: pytest.fail("a part of the table is no result to keep"))
    options = ("--tokenizer", place.tokenizer, "--cache", place.kept, "--workers", 1, "--families", "aider")
    monkeypatch.setattr(families, "LARGE", 100)
    run_command(monkeypatch, place.traces, *options)
    shown = capsys.readouterr().out
    assert "All methods warm" in shown
    assert max(map(len, shown.splitlines())) <= 120
    monkeypatch.setattr(jobs, "do", lambda *_: pytest.fail("a finished replay is not done again"))
    result = command.measure(place, ["aider"], list(VIEWS), ablated=True, workers=1)
    cold, warm = (result["views"][name]["rows"][0]["speedup"] for name in ("cold", "warm"))
    assert cold["none"] == 1
    assert warm["suffix"] > cold["suffix"], "the other half of the chats says the same"
    assert warm["agspec"] > cold["agspec"]
    assert cold["oracle"] >= cold["agspec"] > 1
    assert {row["name"] for row in result["ablations"]} == set(ABLATIONS)
    assert result["targets"][0] | {"text": ""} == {
        "text": "", "want": 12, "reached": 4, "met": False, "is_gain": False
    }  # fmt: skip
    monkeypatch.setattr(families, "LARGE", 10_000)
    assert command.measure(place, ["aider"], ["cold"], ablated=False, workers=1)["comparisons"] == {}


def test_absent_traces_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match=r"nowhere: not there; make table TRACES="):
        run_command(monkeypatch, tmp_path / "nowhere")


@needs_shared
def test_shared_families() -> None:
    tokenizer = load_tokenizer(SHARED / "tokenizers" / "qwen2.tokenizer.json")
    aider = load_family("aider", SHARED / "traces", tokenizer)
    assert len(aider.sessions) == 6
    assert aider.in_mean
    openhands = load_family("openhands json", SHARED / "traces", tokenizer, "one role")
    assert {planned.role for planned in openhands.calls} == {"other"}
    assert not openhands.in_mean
    assert len(names()) == 8
