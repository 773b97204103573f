"""The editor's side, with a simulated typist and a clock of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from agspec.fim.client import Completer, Request, inside_text
from agspec.fim.languages import language_of


class Typist:
    """A clock that moves when told to; sleeps and answers end when their time has come."""

    def __init__(self, answer: Callable[[Request], str], answer_s: float = 0.1) -> None:
        self.time = 0.0
        self.asked: list[str] = []
        self.cancelled: list[str] = []
        self._waiting: list[tuple[float, asyncio.Event]] = []
        self._answer = answer
        self._answer_s = answer_s
        self.completer = Completer(self.ask, clock=self)

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        event = asyncio.Event()
        self._waiting.append((self.time + seconds, event))
        await event.wait()

    async def ask(self, request: Request) -> str:
        self.asked.append(request.prefix)
        try:
            await self.sleep(self._answer_s)
        except asyncio.CancelledError:
            self.cancelled.append(request.prefix)
            raise
        return self._answer(request)

    async def wait(self, seconds: float) -> None:
        until = self.time + seconds
        while True:
            for _ in range(5):
                await asyncio.sleep(0)
            due = [entry for entry in self._waiting if entry[0] <= until]
            if not due:
                break
            first = min(due, key=lambda entry: entry[0])
            self._waiting.remove(first)
            self.time = first[0]
            first[1].set()
        self.time = until

    def type(self, prefix: str, suffix: str = "\n") -> asyncio.Task[str | None]:
        return asyncio.ensure_future(self.completer.changed(prefix, suffix, language="python"))


def run(play: Callable[[Typist], object], answer: Callable[[Request], str] = lambda request: "completed") -> Typist:
    async def main() -> Typist:
        typist = Typist(answer)
        await play(typist)
        return typist

    return asyncio.run(main())


def test_a_pause_is_waited_for_and_a_keystroke_ends_what_was_begun():
    async def play(typist: Typist) -> None:
        first = typist.type("foo")
        await typist.wait(0.03)
        second = typist.type("foob")
        await typist.wait(0.08)
        assert typist.asked == ["foob"], "the first was still within its pause"
        third = typist.type("fooba")
        await typist.wait(1)
        assert (await first, await second, await third) == (None, None, "completed")

    typist = run(play)
    assert typist.asked == ["foob", "fooba"]
    assert typist.cancelled == ["foob"]
    assert typist.completer.counts.cancelled == 2


@pytest.mark.parametrize("end", [".", "(", "{", "->", "\n"])
def test_after_an_opener_nothing_is_waited_for(end: str):
    async def play(typist: Typist) -> None:
        shown = typist.type(f"foo{end}")
        await typist.wait(0.101)
        assert shown.done()

    assert run(play).asked == [f"foo{end}"]


def test_typing_along_a_suggestion_keeps_it_without_asking():
    async def play(typist: Typist) -> None:
        shown = typist.type("ret")
        await typist.wait(1)
        assert await shown == "urn x"
        for typed, left in (("retu", "rn x"), ("return ", "x"), ("retu", "rn x")):
            assert await typist.type(typed) == left
        assert typist.completer.accept() == "rn x"
        other = typist.type("rets")
        await typist.wait(1)
        assert await other == "urn x"

    typist = run(play, lambda request: "urn x")
    assert typist.asked == ["ret", "rets"]
    assert (typist.completer.counts.from_cache, typist.completer.counts.accepted) == (3, 1)


def test_after_a_rejection_it_is_silent_until_a_line_is_begun():
    async def play(typist: Typist) -> None:
        shown = typist.type("foo(")
        await typist.wait(1)
        assert await shown == "completed"
        typist.completer.reject()
        assert await typist.type("foo(") is None
        assert await typist.type("foo(a") is None
        later = typist.type("foo(a)\n")
        await typist.wait(1)
        assert await later == "completed"

    assert run(play).completer.counts.suppressed == 2


@pytest.mark.parametrize(
    ("prefix", "inside"),
    [
        ("x = 'a", True), ("x = 'a'", False), ("x = '", True), ("# note", True), ("# note\n", False), ("f(a", False),
        ('"""doc', True), ('"""doc"""', False), ("x = 'it\\'s", True), ("", False), ("x = ''", False),
    ],
)  # fmt: skip
def test_strings_and_comments_are_told(prefix: str, inside: bool):
    assert inside_text(prefix, language_of("python")) == inside


def test_nothing_is_asked_for_in_comments_or_a_words_first_letter():
    async def play(typist: Typist) -> None:
        for prefix in ("# a", "x = 'hello", "f"):
            assert await typist.type(prefix) is None

    assert run(play).asked == []
