"""The command line as a stranger uses it: in a process of its own."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agspec.cli import SECTIONS
from agspec.costfile import list_costs

MINE = "mini-swe-agent-own"


def agspec(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agspec.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def test_help_lists_every_command_in_its_group() -> None:
    shown = agspec("--help").stdout
    for title, commands in SECTIONS.items():
        block = shown.split(f"{title}:\n")[1].split("\n\n")[0]
        assert [line.split()[0] for line in block.splitlines() if re.match(r"  \S", line)] == list(commands)


@pytest.mark.parametrize("command", [name for section in SECTIONS.values() for name in section])
def test_every_command_has_help(command: str) -> None:
    done = agspec(command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage:")


def test_simulate_prints_one_row_for_each_trace_method_and_ratio(tmp_path: Path) -> None:
    done = agspec("simulate", MINE, "--tokenizer", "embedded", "--methods", "none,ngram,agspec",
                  "--cost-ratio", "0.03,0.4", "--html", tmp_path / "page.html", "--json")  # fmt: skip
    result = json.loads(done.stdout)
    rows = {(row["method"], row["cost_ratio"]): row for row in result["rows"]}
    assert list(rows) == [(method, ratio) for method in ("none", "ngram", "agspec") for ratio in (0.03, 0.4)]
    for row in rows.values():
        assert set(row) >= {
            "trace", "method", "cost_ratio", "num_steps", "num_tokens", "num_drafts", "num_draft_tokens",
            "num_accepted_tokens", "mean_acceptance_length", "by_source", "by_role", "propose_us", "speedup",
        }  # fmt: skip
        assert row["mean_acceptance_length"] == row["num_tokens"] / row["num_steps"]
        ratio, steps, drafted = row["cost_ratio"], row["num_steps"], row["num_draft_tokens"]
        assert row["speedup"] == pytest.approx(
            row["num_tokens"] * (1 + ratio) / (steps * (1 + ratio) + ratio * drafted)
        )
    assert rows["none", 0.03]["speedup"] == 1.0
    assert rows["agspec", 0.03]["mean_acceptance_length"] > rows["ngram", 0.03]["mean_acceptance_length"] > 1.2
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_simulate_takes_a_cost_profile_and_a_batch(tmp_path: Path) -> None:
    run = ("simulate", MINE, "--tokenizer", "embedded", "--methods", "none,agspec", "--json")
    result = json.loads(agspec(*run, "--cost", "h100-7b", "--batch", 2).stdout)
    none, ours = result["rows"]
    assert (ours["cost"], ours["batch"]) == ("h100-7b", 2)
    assert "cost_ratio" not in ours
    assert 1 < ours["mean_batch"] <= 2
    assert none["speedup"] == 1.0
    assert ours["speedup"] == pytest.approx(none["model_time"] / ours["model_time"])
    assert ours["speedup"] > 1.3
    file = tmp_path / "settings.toml"
    file.write_text('cost = "h100-7b"\n')
    told = json.loads(agspec(*run, "--settings", file).stdout)["rows"]
    assert [(row["cost"], row["batch"]) for row in told] == [("h100-7b", 1)] * 2
    told = json.loads(agspec(*run, "--settings", file, "--cost-ratio", "0.4").stdout)["rows"]
    assert [row["cost_ratio"] for row in told] == [0.4] * 2, "a flag goes before the settings"


def test_tables_fit_a_pipe() -> None:
    done = agspec("simulate", MINE, "--tokenizer", "embedded", "--methods", "none,agspec", "--cost-ratio", "0.07")
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 120
    assert "agspec" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["simulate", "no-such", "--tokenizer", "embedded"],
         "agspec: no-such: want a trace file or a shipped session (aider-own, mini-swe-agent-own), found neither"),
        (["simulate", MINE, "--tokenizer", "no-such.json"],
         "agspec: want a tokenizer.json, its folder, 'embedded' or a hub name, got no-such.json: no such file"),
        (["simulate", MINE, "--tokenizer", "embedded", "--methods", "none,magic"],
         "agspec: --methods: want some of none,ngram,suffix,sam,agspec,agspec-suffix,oracle, got magic"),
        (["simulate", MINE, "--tokenizer", "embedded", "--cost-ratio", "fast"],
         "agspec: --cost-ratio: want positive numbers joined by commas, got 'fast'"),
        (["simulate", MINE, "--tokenizer", "embedded", "--cost-ratio", "0.1", "--cost", "h100-7b"],
         "agspec: want --cost or --cost-ratio, got both"),
        (["simulate", MINE, "--tokenizer", "embedded", "--cost", "no.json"],
         f"agspec: no.json: want a cost profile's file or a shipped one ({', '.join(list_costs())}), found neither"),
        (["simulate", MINE, "--tokenizer", "embedded", "--caps", "no.json"],
         "agspec: no.json: want a caps file, got: No such file or directory"),
        (["simulate", MINE, "--tokenizer", "embedded", "--corpus", "no-corpus"],
         "agspec: no-corpus: want a corpus folder (agspec corpus build), got no corpus.json: "
         "No such file or directory"),
        (["corpus", "info", "no-corpus"],
         "agspec: no-corpus: want a corpus folder (agspec corpus build), got no corpus.json: "
         "No such file or directory"),
        (["corpus", "build", MINE, "-o", "c", "--tokenizer", "embedded", "--exclude-session", "@no.txt"],
         "agspec: no.txt: want a file of session names, got: [Errno 2] No such file or directory: 'no.txt'"),
        (["bench", MINE, "--model", "embedded", "--batch", "0"],
         "agspec: --batch: want positive numbers joined by commas, got '0'"),
        (["bench", MINE, "--model", "embedded", "--cost", "no.json"],
         f"agspec: no.json: want a cost profile's file or a shipped one ({', '.join(list_costs())}), found neither"),
        (["bench", MINE, "--model", "embedded", "--cost", "h100-7b", "--cost-ratio", "0.1"],
         "agspec: flags: settings: want cost or cost_ratio, got both"),
        (["profile"], "agspec: --model: want a model's name or folder, or 'embedded', got none"),
        (["profile", "--model", "embedded", "--drafted", "0"],
         "agspec: --drafted: want numbers up to 128, one above 0, got '0'"),
        (["profile", "--model", "embedded", "--drafted", "-1,4"],
         "agspec: --drafted: want numbers from 0 on joined by commas, got '-1,4'"),
        (["profile", "--model", "embedded", "--context", "8100", "-o", "cost.json"],
         "agspec: --max-model-len: want more than 8236 tokens (8100 of context, 88 steps, 48 drafted), got 8192"),
        (["calibrate", MINE, "--tokenizer", "embedded", "-o", "c.json", "--cost", "h100-7b", "--cost-ratio", "0.1"],
         "agspec: flags: settings: want cost or cost_ratio, got both"),
        (["calibrate", MINE, "--tokenizer", "embedded", "-o", "c.json", "--cost", "no.json"],
         f"agspec: no.json: want a cost profile's file or a shipped one ({', '.join(list_costs())}), found neither"),
        (["calibrate", MINE, "--tokenizer", "embedded", "-o", "c.json", "--cost-ratio", "nan"],
         "agspec: flags: cost_ratio: Input should be a finite number, got nan"),
        (["calibrate", MINE, "--tokenizer", "embedded", "-o", "."],
         "agspec: .: want a place to write to, got: Is a directory"),
        (["calibrate", MINE, "--tokenizer", "embedded", "-o", f"{__file__}/caps.json"],
         f"agspec: {__file__}/caps.json: want a place to write to, got: Not a directory"),
        (["inspect", "no.json"], "agspec: no.json: want a caps file, got: No such file or directory"),
        (["verify", "--model", "embedded", "--prompts", "no.txt"],
         "agspec: no.txt: want a text file of prompts, got: [Errno 2] No such file or directory: 'no.txt'"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_line(arguments: list[str], line: str, tmp_path: Path) -> None:
    done = agspec(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines() == [line]
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_profiles_are_listed() -> None:
    told = json.loads(agspec("profile", "--list", "--json").stdout)
    assert tuple(told) == list_costs()
    assert told["h100-7b"]["estimate"] is True
    assert told["cpu-smollm2-135m"]["estimate"] is False
    shown = agspec("profile", "--list").stdout
    assert max(map(len, shown.splitlines())) <= 120
    assert re.search(r"h100-7b +Qwen2.5-7B .* estimate", shown)


def test_caps_file_is_used_and_checked(tmp_path: Path) -> None:
    from agspec.tokens import load_tokenizer

    caps = {"agspec_caps": 2, "tokenizer": load_tokenizer("embedded").fingerprint, "default": {"cap": 0}}
    file = tmp_path / "caps.json"
    file.write_text(json.dumps(caps))
    run = ("simulate", MINE, "--tokenizer", "embedded", "--methods", "agspec", "--cost-ratio", "0.07", "--json")
    row = json.loads(agspec(*run, "--caps", file).stdout)["rows"][0]
    assert (row["num_drafts"], row["speedup"]) == (0, 1.0)
    file.write_text(json.dumps({**caps, "tokenizer": "0" * 16}))
    assert (
        f"{file}: made for tokenizer {'0' * 16}, the model has {caps['tokenizer']}"
        in agspec(*run, "--caps", file).stderr
    )
    file.write_text(json.dumps({**caps, "roles": {"wizard": {"cap": 3}}}))
    assert f"agspec: {file}: roles.wizard" in agspec(*run, "--caps", file).stderr
    file.write_text(json.dumps({**caps, "agspec_caps": 1}))
    told = f"agspec: {file}: want a caps file of format 2, got format 1: calibrate again"
    assert agspec(*run, "--caps", file).stderr.splitlines() == [told]
    assert agspec("inspect", file).stderr.splitlines() == [told]


def test_calibrate_inspect_simulate(tmp_path: Path) -> None:
    file, page = tmp_path / "caps.json", tmp_path / "caps.html"
    settings = tmp_path / "settings.toml"
    settings.write_text('cost = "h100-7b"\n')
    run = ("calibrate", "aider-own", "--tokenizer", "embedded", "--settings", settings, "--folds", 2)
    done = agspec(*run, "--cost-ratio", "0.02", "-o", file)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [f"caps: {file}"]
    assert max(map(len, done.stdout.splitlines())) <= 120
    assert re.search(r"^The odds (hold|do not hold): ", done.stdout, re.MULTILINE)
    shown = agspec("inspect", file, "--html", page)
    assert shown.stdout == done.stdout
    assert shown.stderr.splitlines() == [f"report: {page}"]
    assert page.read_text().startswith("<!DOCTYPE html>")
    told = json.loads(agspec("inspect", file, "--json").stdout)
    assert (told["agspec_caps"], told["cost"], told["tool_wire"]) == (2, "ratio 0.02", "json"), "a flag goes first"
    assert [(t["name"], t["num_sessions"], len(t["sha256"])) for t in told["traces"]] == [("aider-own", 2, 64)]
    assert told["evaluation"]["folds"] == 2
    assert "odds" not in told
    run = ("simulate", MINE, "--tokenizer", "embedded", "--methods", "agspec", "--cost-ratio", "0.03", "--json")
    (cold,), (warm,) = (json.loads(agspec(*run, *caps).stdout)["rows"] for caps in ((), ("--caps", file)))
    assert warm["speedup"] > 0.99 * cold["speedup"], "another agent's sessions do no harm"
    assert warm["drift"] == pytest.approx(1, abs=0.25)


def test_a_trace_without_outputs_is_refused(tmp_path: Path) -> None:
    silent = {"session": "s", "messages": [{"role": "user", "content": "?"}], "output": {"content": ""}}
    lines = ({"agspec_trace": 1, "kind": "openai", "sources": []}, silent)
    (tmp_path / "empty.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = agspec("calibrate", "empty.jsonl", "--tokenizer", "embedded", "-o", "caps.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == ["agspec: empty.jsonl: want recorded outputs, got none"]
    assert not (tmp_path / "caps.json").exists()


def test_corpus_is_built_whole_and_helps(tmp_path: Path) -> None:
    built = agspec("corpus", "build", MINE, "-o", tmp_path / "corpus", "--tokenizer", "embedded", "--json")
    assert json.loads(built.stdout)["num_documents"] == 28
    again = agspec("corpus", "build", MINE, "-o", tmp_path / "corpus", "--tokenizer", "embedded")
    assert again.stderr.strip() == f"agspec: {tmp_path / 'corpus'}: want a folder to make, found one there"
    run = ("simulate", MINE, "--tokenizer", "embedded", "--methods", "agspec", "--cost-ratio", "0.03", "--json")
    cold = json.loads(agspec(*run).stdout)["rows"][0]
    result = json.loads(agspec(*run, "--corpus", tmp_path / "corpus").stdout)
    assert result["settings"]["corpus_info"]["overlap"] == ["mini-controller", "mini-line-numbers"]
    warm = result["rows"][0]
    assert warm["by_source"]["corpus"]["num_accepted_tokens"] > 0
    assert warm["mean_acceptance_length"] > 2 * cold["mean_acceptance_length"]
