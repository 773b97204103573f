"""What is served is recorded: whole calls, a file a tenant, without secrets, and never in the way."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path

import pytest

from agspec.errors import InputError
from agspec.messages import Message
from agspec.replay.trace import Call, Output, read_trace
from agspec.serve.recorder import Recorder

SECRETS = [
    "sk-proj-abcdefghijklmnopqrstuvwxyz012345", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "AKIAABCDEFGHIJKLMNOP",
    "xoxb-1234567890-abcdefghij", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKCAQ\n-----END RSA PRIVATE KEY-----",
]  # fmt: skip


def call(*texts: str, session: str = "s", answer: str = "done") -> Call:
    messages = tuple(Message(role="user", content=text) for text in texts)
    return Call(session=session, messages=messages, output=Output(content=answer), role="coder", scaffold="aider")


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_calls_are_appended_and_read_again(name: str, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / name)
    first, second = call("a"), call("a", "b")
    recorder.add("", first)
    recorder.add("", second)
    recorder.add("0f", call("mine", session="x"))
    assert read_trace(tmp_path / name).calls == (first, second)
    assert read_trace(recorder.path_of("0f")).calls == (call("mine", session="x"),)
    assert recorder.path_of("0f").name == name.replace("t.", "t-0f.")
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    Recorder(tmp_path / name).add("", call("a", "b", "c"))
    assert [len(c.messages) for c in read_trace(tmp_path / name).calls] == [1, 2, 3]
    data = (tmp_path / name).read_bytes()
    assert (gzip.decompress(data) if name.endswith("gz") else data).count(b"\n") == 4


def test_secrets_are_struck_out(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "t.jsonl", redact=[r"EMP-\d+"])
    code = "token = os.environ['TOKEN']\nurl = 'http://host:8000/a@b'\n"
    recorder.add("", call(*SECRETS, "git clone https://me:pass@host/x", "for EMP-1234", code, answer=SECRETS[0]))
    (found,) = read_trace(tmp_path / "t.jsonl").calls
    texts = [message.content for message in found.messages]
    assert texts[: len(SECRETS)] == ["[redacted]"] * len(SECRETS)
    assert texts[len(SECRETS) :] == ["git clone https://[redacted]@host/x", "for [redacted]", code]
    assert found.output.content == "[redacted]"


def test_striking_out_takes_time_in_proportion(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "t.jsonl")
    for piece in ("eyJaaaaaaaaaa-", "sk-aaaa-", "-----BEGIN PRIVATE KEY-----", "://a:a", "Bearer "):
        recorder.add("", call(piece * 40_000))
    assert len(read_trace(tmp_path / "t.jsonl").calls) == 5


def test_a_full_disk_ends_the_recording_and_leaves_whole_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder(tmp_path / "t.jsonl")
    recorder.add("", call("a"))
    write = os.write

    def full(handle: int, data: bytes) -> int:
        write(handle, data[:7])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    recorder.add("", call("a", "b"))
    monkeypatch.undo()
    recorder.add("", call("a", "b", "c"))
    assert recorder.failed is not None
    assert len(read_trace(tmp_path / "t.jsonl").calls) == 1
    assert [record.message for record in caplog.records] == [
        f"agspec: recording has ended: {tmp_path / 't.jsonl'}: want a place to record to, got: No space left on device"
    ]


def test_what_cannot_be_recorded_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="want a place to record to, got: Is a directory"):
        Recorder(tmp_path)
    with pytest.raises(InputError, match="redact: want a regular expression"):
        Recorder(tmp_path / "t.jsonl", redact=["("])
