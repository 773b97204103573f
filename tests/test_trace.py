"""The trace file: histories stored once, the same bytes for the same trace, one line for a wrong one."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agspec.errors import InputError, RecordError
from agspec.replay.trace import Call, Message, Output, ToolCall, Trace, read_trace, write_trace

HEADER: dict[str, Any] = {"agspec_trace": 1, "kind": "test", "sources": []}
TEXT = st.text(
    st.one_of(st.sampled_from('a\n\r\t"\\\u2028\x85é'), st.characters(exclude_categories=["Cs"])), max_size=6
)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant"]),
    content=TEXT,
    tool_calls=st.lists(st.builds(ToolCall, name=TEXT, arguments=TEXT), max_size=1).map(tuple),
)
POOL = st.lists(MESSAGES, min_size=1, max_size=4)
CALLS = st.builds(
    Call,
    session=st.sampled_from(["s", "t"]),
    messages=POOL.map(tuple),
    output=st.builds(Output, content=TEXT, reasoning=st.none() | TEXT),
    role=st.none() | st.sampled_from(["coder", "chat"]),
    model=st.none() | TEXT,
    tools=st.lists(st.fixed_dictionaries({"name": TEXT, "deep": st.lists(st.integers(-9, 9))}), max_size=1).map(tuple),
)


def grow(calls: list[Call]) -> tuple[Call, ...]:
    """Each second call resends the history of its session."""
    history: dict[str, tuple[Message, ...]] = {}
    grown = []
    for i, call in enumerate(calls):
        messages = history.get(call.session, ()) + call.messages if i % 2 else call.messages
        grown.append(call.model_copy(update={"messages": messages}))
        history[call.session] = messages
    return tuple(grown)


@settings(max_examples=80, deadline=None)
@given(st.lists(CALLS, min_size=1, max_size=6).map(grow), st.sampled_from(["t.jsonl", "t.jsonl.gz"]))
def test_round_trip(calls: tuple[Call, ...], name: str) -> None:
    trace = Trace(name="t", kind="test", calls=calls, sources=("a", "b"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_trace(trace, path)
        first = path.read_bytes()
        assert read_trace(path) == trace
        write_trace(read_trace(path), path)
        assert path.read_bytes() == first
        assert [entry.name for entry in Path(folder).iterdir()] == [name]


def say(session: str, *texts: str) -> Call:
    return Call(session=session, messages=tuple(Message(role="user", content=t) for t in texts), output=Output())


def test_a_history_is_stored_once(tmp_path: Path) -> None:
    """Of each call only what its session's call before did not hold, also when sessions take turns."""
    calls = (
        say("s", "a", "b"),
        say("t", "a"),
        say("s", "a", "b", "c"),
        say("t", "a", "d"),
        say("s", "a", "x", "c"),
        say("s", "a"),
        say("s", "z"),
    )
    path = tmp_path / "t.jsonl"
    write_trace(Trace(name="t", kind="test", calls=calls), path)
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()[1:]]
    kept = [(r["keep"], "".join(m["content"] for m in r["messages"])) for r in records]
    assert kept == [(0, "ab"), (0, "a"), (2, "c"), (1, "d"), (1, "xc"), (1, ""), (0, "z")]
    assert read_trace(path).calls == calls
    assert {name: len(found) for name, found in read_trace(path).sessions.items()} == {"s": 5, "t": 2}


def test_name_is_the_files(tmp_path: Path) -> None:
    for name in ("run.v2.jsonl", "run.v2.jsonl.gz"):
        write_trace(Trace(name="x", kind="test", calls=(say("s", "a"),)), tmp_path / name)
        assert read_trace(tmp_path / name).name == "run.v2"


def record(**changes: Any) -> dict[str, Any]:
    return {"session": "s", "messages": [{"role": "user", "content": "a"}], "output": {"content": "b"}, **changes}


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ([b""], "record 1: want a JSON object, got b''"),
        ([b"{"], "record 1: want a JSON object, got b'{'"),
        ([[1]], "record 1: want a JSON object, got list"),
        ([{"agspec_trace": 2}], "record 1: want an agspec trace of format 1, got \"{'agspec_trace': 2}\"; make one"),
        ([HEADER, b"nope"], "record 2: want a JSON object, got b'nope'"),
        ([HEADER, record(), b"", "x"], "record 4: want a JSON object, got str"),
        ([HEADER, record(extra=1)], "record 2: extra: Extra inputs are not permitted"),
        ([HEADER, record(role="pilot")], "record 2: role: Input should be 'coder'"),
        ([HEADER, {"session": "s", "messages": []}], "record 2: output: Field required"),
        ([HEADER, record(keep=1)], "record 2: keep: want 0 to 0 messages of the call before, got 1"),
        ([HEADER, record(), record(keep=-1)], "record 3: keep: want 0 to 1 messages of the call before, got -1"),
        ([HEADER, record(), record(keep="1")], "record 3: keep: want 0 to 1 messages of the call before, got '1'"),
        ([HEADER, record(), record(session="t", keep=1)], "record 3: keep: want 0 to 0 messages of the call before"),
        ([{**HEADER, "sources": 5}, record()], "record 1: "),
        ([{**HEADER, "sources": [1]}, record()], "record 1: "),
    ],
)  # fmt: skip
def test_wrong_records(lines: list[Any], line: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\n".join(x if isinstance(x, bytes) else json.dumps(x).encode() for x in lines) + b"\n")
    with pytest.raises(RecordError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{path}, {line}")
    assert "\n" not in str(caught.value)


def test_wrong_files(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    whole = gzip.compress(json.dumps(HEADER).encode() + b"\n")
    for content, reason in (
        (whole, "want at least one call, got none"),
        (whole[:-9], "want a whole gzip file, got a broken one"),
        (whole[:20] + b"\0\0\0\0" + whole[24:], "want a whole gzip file, got a broken one"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            read_trace(path)
        assert str(caught.value).startswith(f"{path}: {reason}")
    with pytest.raises(InputError) as caught:
        read_trace(tmp_path / "none.jsonl")
    assert str(caught.value) == f"{tmp_path / 'none.jsonl'}: want a readable file, got: No such file or directory"


def test_an_unwritable_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    trace = Trace(name="x", kind="test", calls=(say("s", "a"),))
    with pytest.raises(InputError) as caught:
        write_trace(trace, tmp_path / "file" / "t.jsonl")
    assert "want a place to write to, got: " in str(caught.value)
