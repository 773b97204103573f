"""Requests find their session, by name or by content, and never one of another tenant."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from agspec.messages import Message, ToolCall
from agspec.serve.bodies import Asked, read
from agspec.serve.sessions import Session, Sessions
from tests.support import SHARED, needs_shared

SYSTEM = Message(role="system", content="You are an agent. Today is Monday.")
PLAN = "1. In parse.py, let read_header skip blank lines.\n2. Add a test for a file that begins with one."


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def user(text: str) -> Message:
    return Message(role="user", content=text)


def said(text: str, *calls: ToolCall) -> Message:
    return Message(role="assistant", content=text, tool_calls=calls)


def ask(*messages: Message) -> Asked:
    return Asked((SYSTEM, *messages))


@pytest.fixture
def sessions() -> Sessions:
    return Sessions(max_age_s=100, clock=Clock())


def test_a_conversation_that_grows_is_one_session(sessions: Sessions) -> None:
    turns = [user("fix the parser")]
    first, how = sessions.find("", ask(*turns))
    assert how == "new"
    for number in range(3):
        answer = said("", ToolCall(name="bash", arguments=f'{{"command": "sed -n {number}p a.py"}}'))
        sessions.answered(first, [answer])
        turns += [answer, Message(role="tool", content=f"line {number}")]
        assert sessions.find("", ask(*turns)) == (first, "prefix")
    assert sessions.find("", ask(user("write the docs")))[1] == "new"
    assert first.num_requests == 4


def test_dates_in_the_system_message_do_not_part_a_session(sessions: Sessions) -> None:
    first, _ = sessions.find("", ask(user("fix the parser")))
    tuesday = Message(role="system", content="You are an agent. Today is Tuesday.")
    assert sessions.find("", Asked((tuesday, user("fix the parser"), said("Looking at it."))))[0] is first


def test_arguments_written_anew_are_the_same_answer(sessions: Sessions) -> None:
    first, _ = sessions.find("", ask(user("files moved to the front"), user("fix the parser")))
    sessions.answered(first, [said("", ToolCall(name="edit", arguments='{"path":"a.py","old":"x = 1"}'))])
    again = said("", ToolCall(name="edit", arguments='{"old": "x = 1", "path": "a.py"}'))
    assert sessions.find("", ask(user("other files"), user("fix the parser"), again)) == (first, "answer")


def test_an_editor_is_given_the_architects_plan(sessions: Sessions) -> None:
    architect, _ = sessions.find("", ask(user("make it robust")))
    sessions.find("", ask(user("another task altogether")))
    sessions.answered(architect, [said(PLAN)])
    editor = ask(user("parse.py:\n..."), said("Ok."), user(PLAN + "\n\nONLY EVER RETURN CODE!"))
    assert sessions.find("", editor) == (architect, "quote")


def test_a_condenser_is_given_much_of_it(sessions: Sessions) -> None:
    worker, _ = sessions.find("", ask(user("make it robust")))
    sessions.answered(worker, [said(PLAN)])
    events = "\n".join(f"<EVENT id={i}>\n  {line}\n</EVENT>" for i, line in enumerate(PLAN.splitlines()))
    assert sessions.find("", ask(user(f"Summarise what was done.\n{events}"))) == (worker, "lines")


def test_lines_of_two_sessions_tell_neither(sessions: Sessions) -> None:
    for task in ("first task", "second task"):
        session, _ = sessions.find("", ask(user(task)))
        sessions.answered(session, [said(PLAN)])
    assert sessions.find("", ask(user(PLAN)))[1] == "new"


def test_small_talk_tells_no_session(sessions: Sessions) -> None:
    session, _ = sessions.find("", ask(user("a task")))
    sessions.answered(session, [said("Ok.")])
    assert sessions.find("", ask(user("a new task"), said("Ok."), user("go on")))[1] == "new"


def test_a_name_wins(sessions: Sessions) -> None:
    first, how = sessions.find("", ask(user("x")), named="abc")
    assert (first.name, how) == ("abc", "named")
    assert sessions.find("", ask(user("x")), named="def")[0] is not first
    assert sessions.find("", ask(user("y")), named="abc")[0] is first


def test_tenants_are_apart(sessions: Sessions) -> None:
    mine, _ = sessions.find("me", ask(user("fix the parser")), named="abc")
    sessions.answered(mine, [said(PLAN)])
    for asked, named in (
        (ask(user("fix the parser")), None), (ask(user("x"), said(PLAN), user("go on")), None),
        (ask(user(PLAN)), None), (ask(user("x")), "abc"),
    ):  # fmt: skip
        assert sessions.find("you", asked, named=named)[0] is not mine
    assert sessions.get("you", "abc") is not mine


def test_sessions_end_and_leave_nothing(sessions: Sessions) -> None:
    clock, over = Clock(), []
    sessions = Sessions(max_age_s=100, clock=clock, most=3, ended=over.append)
    first, _ = sessions.find("", ask(user("fix the parser")))
    sessions.answered(first, [said(PLAN)])
    clock.now = 90
    second, _ = sessions.find("", ask(user("another task")))
    clock.now = 150
    assert sessions.find("", ask(user("fix the parser"), said(PLAN), user("go on")))[1] == "new"
    assert over == [first]
    sessions.end(second)
    sessions.end(second)
    assert over == [first, second]
    assert len(list(sessions)) == 1
    for number in range(10):
        sessions.find("", ask(user(f"task number {number}")))
    assert len(list(sessions)) == 3
    sessions.answered(first, [said(PLAN)])
    assert sessions.find("", ask(user(PLAN)))[1] == "new", "what is over learns nothing"


def test_ten_thousand_sessions_opened_and_dropped() -> None:
    sessions = Sessions(max_age_s=100, clock=Clock(), most=100)
    for number in range(10_000):
        session, _ = sessions.find(f"tenant {number % 7}", ask(user(f"task number {number}")))
        sessions.answered(session, [said(f"the answer to the question number {number}")])
    assert len(list(sessions)) == 100
    for session in list(sessions):
        sessions.end(session)
    assert not sessions._tenants


def recorded(name: str) -> Iterator[tuple[Asked, list[Message]]]:
    """Requests of a real client in order, each with the scripted answer it was given."""
    folder = SHARED / "traces" / "wire-captures"
    replies = json.loads((folder / f"{name}.scripted-replies.json").read_text())
    lines = (folder / f"{name}.requests.jsonl").read_text().splitlines()
    for line, reply in zip(lines, replies, strict=False):
        record = json.loads(line)
        body = record["body"] if isinstance(record["body"], dict) else json.loads(record["body"])
        answer = {"messages": [{"role": "assistant", **reply}]}
        yield read(record["path"], body), list(read(record["path"], answer).messages)


@needs_shared
@pytest.mark.parametrize(
    ("name", "parted"), [("aider-0.86.2", 1), ("mini-swe-agent-2.4.6", 0), ("openhands-sdk-1.58.2", 0)]
)
def test_requests_of_real_clients_are_linked(name: str, parted: int, sessions: Sessions) -> None:
    """One of Aider's editor requests has only the architect's "Now g" to go by: too little to be linked."""
    found: list[Session] = []
    for asked, answers in recorded(name):
        session, _ = sessions.find("", asked)
        sessions.answered(session, answers)
        found.append(session)
    assert len(found) > 1
    assert len({session.name for session in found}) == 1 + parted
