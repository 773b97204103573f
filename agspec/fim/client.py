"""The editor's side of inline completion: when to ask, what to keep, what to show. Asyncio; the clock is passed in.

>>> def ask(request): ...            # an async function: a completion, cancelled when it is not wanted any more
>>> completer = Completer(ask)       # doctest: +SKIP
>>> await completer.changed(prefix, suffix, language="python")   # doctest: +SKIP
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from agspec.fim.languages import Language, language_of

DEBOUNCE_S = 0.06
"""Pause in typing after which a completion is asked for."""
AT_ONCE = (".", "(", "{", "->", "\n")
"""After these it is asked for without a pause: what follows is wanted, and typing pauses here anyway."""
REJECTED_S = 1.5
"""After a rejection nothing is asked for so long, until a line is begun."""
CACHED = 64
"""Suggestions that are kept."""
SHORTEST = 2
"""Characters of a line from which a completion inside it is asked for."""


class Clock(Protocol):
    """Time and sleep; asyncio's by default."""

    def now(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class LoopClock:
    """The running event loop's."""

    def now(self) -> float:
        """Seconds."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """See asyncio.sleep."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True)
class Request:
    """What is asked for: the text on both sides of the cursor."""

    prefix: str
    suffix: str
    language: str | None = None


Ask = Callable[[Request], Awaitable[str]]


@dataclass
class Counts:
    """How often what happened."""

    asked: int = 0
    cancelled: int = 0
    late: int = 0
    from_cache: int = 0
    suppressed: int = 0
    accepted: int = 0
    rejected: int = 0


@dataclass
class Completer:
    """One editor's completions. ``in_comments``: whether strings and comments are completed too."""

    ask: Ask
    debounce_s: float = DEBOUNCE_S
    clock: Clock = field(default_factory=LoopClock)
    in_comments: bool = False
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        self._cache: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._running: asyncio.Task[str] | None = None
        self._version = 0
        self._rejected_at: float | None = None
        self._shown: tuple[Request, str] | None = None

    async def changed(self, prefix: str, suffix: str, *, language: str | None = None) -> str | None:
        """The text was changed, or the cursor moved: what to show now; None for nothing.

        Each call ends the one before it, whose answer is then None.
        """
        self._version += 1
        version, request = self._version, Request(prefix, suffix, language)
        self._stop()
        kept = self._cached(request)
        if kept is not None:
            self.counts.from_cache += 1
            return self._show(request, kept)
        if self._unwanted(request):
            self.counts.suppressed += 1
            return self._show(request, "")
        if not prefix.endswith(AT_ONCE):
            await self.clock.sleep(self.debounce_s)
            if version != self._version:
                self.counts.cancelled += 1
                return None
        return await self._asked(request, version)

    def accept(self) -> str:
        """What is shown is taken: the text to insert."""
        taken = self._shown[1] if self._shown else ""
        self.counts.accepted += bool(taken)
        self._shown = None
        return taken

    def reject(self) -> None:
        """What is shown is not wanted."""
        if self._shown is not None:
            request, text = self._shown
            self._cache.pop((request.prefix, request.suffix), None)
            self.counts.rejected += bool(text)
        self._shown = None
        self._rejected_at = self.clock.now()

    async def _asked(self, request: Request, version: int) -> str | None:
        self.counts.asked += 1
        task = self._running = asyncio.ensure_future(self.ask(request))
        try:
            text = await task
        except asyncio.CancelledError:
            if version == self._version:
                raise
            return None
        finally:
            if self._running is task:
                self._running = None
        self._keep(request, text)
        if version != self._version:
            self.counts.late += 1
            return None
        return self._show(request, text)

    def _stop(self) -> None:
        if self._running is not None and not self._running.done():
            self._running.cancel()
            self.counts.cancelled += 1
        self._running = None

    def _show(self, request: Request, text: str) -> str | None:
        self._shown = (request, text) if text else None
        return text or None

    def _keep(self, request: Request, text: str) -> None:
        self._cache[request.prefix, request.suffix] = text
        while len(self._cache) > CACHED:
            self._cache.popitem(last=False)

    def _cached(self, request: Request) -> str | None:
        """A suggestion made here, or a few characters earlier and typed along since: what is left of it."""
        for (prefix, suffix), text in reversed(self._cache.items()):
            if suffix != request.suffix or not request.prefix.startswith(prefix):
                continue
            typed = request.prefix[len(prefix) :]
            if text.startswith(typed) and (len(text) > len(typed) or not typed):
                return text[len(typed) :]
        return None

    def _unwanted(self, request: Request) -> bool:
        """In a string or a comment, in a word's first character, and right after a rejection."""
        line = request.prefix[request.prefix.rfind("\n") + 1 :]
        if self._rejected_at is not None:
            if line.strip() and self.clock.now() - self._rejected_at < REJECTED_S:
                return True
            self._rejected_at = None
        if line.strip() and len(line.strip()) < SHORTEST and not request.prefix.endswith(AT_ONCE):
            return True
        return not self.in_comments and inside_text(request.prefix, language_of(request.language))


def inside_text(prefix: str, language: Language) -> bool:
    """Whether a cursor after ``prefix`` stands in a string or a comment of ``language``."""
    if language.prose:
        return False
    for found in language.pattern.finditer(prefix):
        if found.end() == len(prefix) and len(found[0]) > 0 and found[0] not in "()[]{}":
            return _open(found[0], language)
    return False


def _open(text: str, language: Language) -> bool:
    """Whether a comment or string that reaches the text's end is not closed there."""
    for begin, end in language.blocks:
        if text.startswith(begin):
            return not text.endswith(end) or len(text) < len(begin) + len(end)
    if language.comment and text.startswith(language.comment):
        return True
    for mark in language.strings:
        if text.startswith(mark):
            closed = text.endswith(mark) and len(text) >= 2 * len(mark) and not text[: -len(mark)].endswith("\\")
            return not closed
    return False
