"""A completion as it comes: ended where it should, cleaned, and shown piece by piece; streamed or whole, the same text.

What is shown is never taken back: a piece that may yet turn out to repeat the text after the cursor, to be half of a
special token or of a character, waits until that is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agspec.fim.languages import CLOSERS, open_brackets
from agspec.fim.stopping import Cursor, end_of

HALF = "\N{REPLACEMENT CHARACTER}"
"""What a decoder shows for part of a character."""
FENCE = "```"


@dataclass(frozen=True)
class _View:
    """Of what came: ``text`` to be shown, of which the first ``known`` characters are sure; ``reason``: why over."""

    text: str
    known: int
    reason: str | None


class Completion:
    """Feed it what the model writes. ``stops``: texts of special tokens; ``typed``: what was typed since the request.

    ``healed``: the end of the prefix that was left out of the prompt, which the model has to write first.
    """

    def __init__(self, cursor: Cursor, *, stops: Sequence[str] = (), typed: str = "", healed: str = "") -> None:
        self._cursor = cursor
        around = cursor.prefix + cursor.suffix
        self._stops = tuple(stop for stop in stops if stop not in around)
        self._typed = typed
        self._healed = healed
        self._raw = ""
        self._shown = ""
        self.reason: str | None = None
        """Why it is over: "stop", "typed" or "healed" where it does not go on from what was typed, "repeat"."""

    @property
    def text(self) -> str:
        """All that was shown."""
        return self._shown

    @property
    def ended(self) -> bool:
        """Whether the model need write no more."""
        return self.reason is not None

    def feed(self, piece: str) -> str:
        """What more is to be shown."""
        return "" if self.ended else self._show(piece, over=False)

    def end(self) -> str:
        """The model is done: what was held back, as far as it is to be shown."""
        return "" if self.ended else self._show("", over=True)

    def _show(self, piece: str, *, over: bool) -> str:
        self._raw += piece
        view = self._view(over=over)
        self.reason = view.reason
        more = view.text[len(self._shown) : view.known]
        self._shown += more
        return more

    def _view(self, *, over: bool) -> _View:
        text, reason = self._before_stops()
        over = over or reason is not None
        waits = 0 if over else self._half_stop(text)
        unfenced, closed = _unfenced(text, self._cursor, over=over)
        if unfenced is None:
            return _View("", 0, reason)
        if closed:
            over, waits, reason = True, 0, "stop"
        elif unfenced != text and not over:
            waits = max(waits, len(FENCE))
        for expected, name in ((self._healed, "healed"), ("", "space"), (self._typed, "typed")):
            if name == "space":
                unfenced = self._without_spaces(unfenced)
                continue
            if expected and not unfenced.startswith(expected):
                if not over and expected.startswith(unfenced):
                    return _View("", 0, None)
                return _View("", 0, name)
            unfenced = unfenced[len(expected) :]
        end = end_of(unfenced, self._now)
        if end is not None and end <= len(unfenced) - waits:
            unfenced, over, waits, reason = unfenced[:end], True, 0, "stop"
        return self._cleaned(unfenced, over=over, waits=waits, reason=reason or ("stop" if over else None))

    @property
    def _now(self) -> Cursor:
        """The cursor where it is since the user typed on."""
        cursor = self._cursor
        return replace(cursor, prefix=cursor.prefix + self._typed) if self._typed else cursor

    def _before_stops(self) -> tuple[str, str | None]:
        places = [at for at in (self._raw.find(stop) for stop in self._stops) if at >= 0]
        return (self._raw[: min(places)], "stop") if places else (self._raw, None)

    def _half_stop(self, text: str) -> int:
        """Characters at the end that may begin a special token's text."""
        longest = 0
        for stop in self._stops:
            for size in range(min(len(stop) - 1, len(text)), longest, -1):
                if text.endswith(stop[:size]):
                    longest = size
                    break
        return longest

    def _without_spaces(self, text: str) -> str:
        """After a space or an indentation no other begins the completion."""
        return text.lstrip(" \t") if self._cursor.prefix[-1:] in (" ", "\t") else text

    def _cleaned(self, text: str, *, over: bool, waits: int, reason: str | None) -> _View:
        overlap = self._overlap(text)
        if over:
            text = text[:overlap].rstrip(HALF)
            if not self._now.whole_line and "\n" in text[len(text.rstrip()) :]:
                text = text.rstrip()
            if not text.strip() or self._repeats(text):
                return _View("", 0, "repeat" if text.strip() else reason)
            return _View(text, len(text), reason)
        known = min(overlap, len(text) - waits, len(text.rstrip(f" \t\r\n{HALF}")))
        if not text[:known].strip() or self._may_repeat(text[:known]):
            known = 0
        return _View(text, known, reason)

    def _overlap(self, text: str) -> int:
        """Where the longest end of ``text`` begins that the suffix begins with, and that is not needed for balance."""
        suffix = self._cursor.suffix
        first = suffix[:1]
        at = text.find(first) if first else -1
        while at >= 0:
            cut = text[at:]
            if suffix.startswith(cut) and cut.strip() and self._balanced(text[:at], cut):
                return at
            at = text.find(first, at + 1)
        return len(text)

    def _balanced(self, kept: str, cut: str) -> bool:
        """Whether ``kept`` closes what it opens, and what the prefix opens and the suffix does not close."""
        closed, opened = open_brackets(kept, self._cursor.language)
        needed = self._cursor.num_to_close or 0
        return not opened and (len(closed) >= needed or CLOSERS.isdisjoint(cut))

    def _repeats(self, text: str) -> bool:
        """Whether it is one line, the one above."""
        return text.strip() == self._above and "\n" not in text.strip()

    def _may_repeat(self, text: str) -> bool:
        return bool(self._above) and self._above.startswith(text.strip())

    @property
    def _above(self) -> str:
        before, _, line = self._cursor.prefix.rpartition("\n")
        return "" if line.strip() else before.rpartition("\n")[2].strip()


def _unfenced(text: str, cursor: Cursor, *, over: bool) -> tuple[str | None, bool]:
    """(without a fence around all of it, whether that is closed); None while it is not known. In prose fences stay."""
    begun = text.lstrip("\n")
    if cursor.language.prose or not begun.startswith(FENCE[: len(begun)] if begun else FENCE):
        return text, False
    _, newline, body = begun.partition("\n")
    if not begun.startswith(FENCE) or not newline:
        return None if not over else ("" if begun.startswith(FENCE) else text), False
    end = body.find(f"\n{FENCE}")
    return (body[:end], True) if end >= 0 else (body, False)
