"""``agspec scaffold``: what a request is taken for."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from agspec.cli import group
from agspec.scaffold import load_profiles


def run(*arguments: object) -> Result:
    return CliRunner().invoke(group, ["scaffold", *map(str, arguments)])


def test_a_request_is_explained(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "Act as an expert software developer.\nUse *SEARCH/REPLACE block*s."},
        {"role": "user", "content": "I have *added these files to the chat*\n\na.py\n```\nx = 1\n```\n"},
    ]
    (tmp_path / "r.json").write_text(json.dumps({"messages": messages, "session_id": "s-1"}))
    said = run("check", tmp_path / "r.json").output.splitlines()
    assert said[0].startswith("agent    aider:")
    assert said[1] == "role     coder"
    assert said[2] == "because  system has 'Act as an expert software developer.', role coder"
    assert said[-2:] == ["session  s-1", "opened   a.py: whole, 1 lines"]


def test_an_unknown_client(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"input": "hello"}')
    said = run("check", tmp_path / "r.json", "--path", "/v1/responses", "--header", "X-Session-ID: abc").output
    assert "agent    generic" in said
    assert "because  no marker of a known agent was found" in said
    assert "session  abc" in said


def test_what_is_no_request(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "half.json").write_text("{")
    for name, line in (
        ("none.json", "want a request's JSON body, got: No such file"),
        ("list.json", "want a JSON object, got list"),
        ("half.json", "want a request's JSON body, got: "),
    ):
        assert line in str(run("check", tmp_path / name).exception)
    assert "--path: want one of /v1/chat/completions" in str(
        run("check", tmp_path / "list.json", "--path", "/x").exception
    )


def test_profiles_are_listed(tmp_path: Path) -> None:
    assert [line.split()[0] for line in run("list").output.splitlines()] == sorted(load_profiles().by_name)
    (tmp_path / "mine.toml").write_text('name = "mine"\nrole = "nobody"\n')
    assert f"{tmp_path / 'mine.toml'}: " in str(run("list", "--profiles", tmp_path).exception)
