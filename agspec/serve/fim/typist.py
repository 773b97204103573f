"""A simulated editor: types a source file at a person's pace and asks for completions as ``agspec.fim.client`` does.

What the model would suggest is told along (``agspec.serve.fim.forced``): the file's own next characters, to the line's
end. So times and counts are those of a right suggestion, and quality is not measured.
"""

from __future__ import annotations

import asyncio
import json
import random
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson

from agspec.errors import AgspecError
from agspec.fim.client import Completer, Request
from agspec.fim.window import Budget, window
from agspec.serve.fim.forced import HEADER
from agspec.tokens import Tokenizer

KEY_S = 0.16
"""Between keystrokes, the median; lines are thought about for some of these."""
ACCEPTED = 0.3
"""Of the suggestions that are shown in time, the share that is taken."""
LEFT_OUT = 400
"""Characters that are still to be typed: between the cursor's first place and the text behind it."""
OPEN = 2
"""Other files that an editor has open, each cut to OPEN_CHARACTERS."""
OPEN_CHARACTERS = 20_000
PATH = "/v1/autocomplete"
MAX_TOKENS = 48


@dataclass(frozen=True)
class Page:
    """A file that is typed on from ``at``, the text behind, and what else is open."""

    path: Path
    text: str
    at: int
    suffix: str
    others: tuple[dict[str, str], ...]

    def body(self, at: int, editor: str) -> dict[str, Any]:
        """The request at a place."""
        return {
            "prefix": self.text[:at], "suffix": self.suffix, "path": self.path.name, "max_tokens": MAX_TOKENS,
            "stream": True, "editor_id": editor, "temperature": 0, "open_files": list(self.others),
        }  # fmt: skip

    def wanted(self, at: int) -> str:
        """The rest of the line at a place, or the next line where it ends there."""
        line, newline, after = self.text[at : self.end].partition("\n")
        return line or newline + after.partition("\n")[0]

    @property
    def end(self) -> int:
        """Where typing ends."""
        return self.at + LEFT_OUT

    def typed(self) -> Iterator[int]:
        """Every place of the cursor."""
        yield from range(self.at + 1, self.end)


def pages(number: int) -> list[Page]:
    """The first ``number`` long files of Python's own library, each with its neighbours open."""
    folder = Path(sysconfig.get_path("stdlib"))
    paths = [path for path in sorted(folder.glob("*.py")) if 20_000 < path.stat().st_size < 60_000]
    if len(paths) < number + OPEN:
        raise AgspecError(f"want at most {len(paths) - OPEN} editors, for so many files {folder} has, got {number}")
    texts = [path.read_text("utf-8") for path in paths]
    return [_page(paths, texts, index) for index in range(number)]


def _page(paths: list[Path], texts: list[str], index: int) -> Page:
    text = texts[index]
    at = text.index("\n", len(text) // 2) + 1
    others = tuple(
        {"path": paths[other].name, "text": texts[other][:OPEN_CHARACTERS]}
        for other in range(index + 1, index + 1 + OPEN)
    )
    return Page(paths[index], text, at, f"\n{text[at + LEFT_OUT :]}", others)


@dataclass
class Seen:
    """Of one run: milliseconds, tokens, and how often what happened.

    ``again``: of a request that is not its editor's first, the share of its prompt that was prefilled once more, beside
    the text behind the cursor where the order makes that inevitable.
    """

    first_ms: list[float] = field(default_factory=list)
    whole_ms: list[float] = field(default_factory=list)
    prepare_ms: list[float] = field(default_factory=list)
    prompt: list[int] = field(default_factory=list)
    fresh: list[int] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    num_keys: int = 0
    num_asked: int = 0
    num_from_cache: int = 0
    num_given_up: int = 0
    num_accepted: int = 0


class Typist:
    """One editor. ``order``: of the server's prompts."""

    def __init__(
        self, number: int, page: Page, client: httpx.AsyncClient, tokenizer: Tokenizer, seen: Seen, order: str
    ) -> None:
        self._page = page
        self._name = f"editor {number}"
        self._rng = random.Random(number)
        self._client = client
        self._tokenizer = tokenizer
        self._seen = seen
        self._completer = Completer(self._ask)
        self._at = page.at
        self._in_flight_ended = 0
        self._answered = 0
        kept = window("", page.suffix, Budget(), self._count).suffix
        self._inevitable = self._count(kept) if order == "psm" else 0

    async def run(self, until: float) -> None:
        """Type until then, from the file's place once more where it was left."""
        pending: set[asyncio.Task[Any]] = set()
        while time.monotonic() < until:
            self._at = self._at + 1 if self._at + 1 < self._page.end else self._page.at + 1
            self._seen.num_keys += 1
            changed = self._completer.changed(self._page.text[: self._at], self._page.suffix, language="python")
            task = asyncio.ensure_future(changed)
            pending.add(task)
            task.add_done_callback(pending.discard)
            await asyncio.sleep(self._pause())
            shown = task.result() if task.done() else None
            if shown and self._page.text.startswith(shown, self._at) and self._rng.random() < ACCEPTED:
                self._at = min(self._at + len(self._completer.accept()), self._page.end - 1)
                self._seen.num_accepted += 1
        await asyncio.gather(*pending, return_exceptions=True)
        self._seen.num_from_cache += self._completer.counts.from_cache
        self._seen.num_given_up += self._completer.counts.cancelled - self._in_flight_ended

    def _count(self, text: str) -> int:
        return len(self._tokenizer.encode(text))

    def _pause(self) -> float:
        key = KEY_S * self._rng.lognormvariate(0, 0.5)
        last = self._page.text[self._at - 1]
        if last == "\n":
            return key + self._rng.uniform(0.3, 1.5)
        return key + (self._rng.uniform(0, 0.3) if last == " " else 0)

    async def _ask(self, request: Request) -> str:
        """One completion, streamed."""
        tape = [*self._tokenizer.encode(self._page.wanted(self._at)).tolist()[:MAX_TOKENS], self._tokenizer.end_id]
        began = time.perf_counter()
        text, first = "", None
        self._seen.num_asked += 1
        try:
            async with self._client.stream(
                "POST", PATH, content=orjson.dumps(self._page.body(self._at, self._name)),
                headers={HEADER: json.dumps(tape), "content-type": "application/json"},
            ) as stream:  # fmt: skip
                async for line in stream.aiter_lines():
                    told = orjson.loads(line[6:]) if line.startswith("data: {") else {}
                    if "error" in told:
                        raise AgspecError(f"{PATH}: want a completion, got: {told['error']['message']}")
                    if "latency_ms" in told:
                        self._note(told, began, first)
                    elif "completion" in told:
                        first = first or time.perf_counter()
                        text += told["completion"]
        except asyncio.CancelledError:
            self._in_flight_ended += 1
            raise
        return text

    def _note(self, told: dict[str, Any], began: float, first: float | None) -> None:
        seen, usage = self._seen, told["usage"]
        now = time.perf_counter()
        if first is not None:
            seen.first_ms.append(1000 * (first - began))
            seen.whole_ms.append(1000 * (now - began))
        prompt = usage["prompt_tokens"]
        fresh = prompt - usage["prompt_tokens_details"]["cached_tokens"]
        seen.prepare_ms.append(told["latency_ms"]["prepare"])
        seen.prompt.append(prompt)
        seen.tokens.append(usage["completion_tokens"])
        seen.fresh.append(fresh)
        if self._answered:
            seen.again.append(max(0, fresh - self._inevitable) / prompt)
        self._answered += 1


async def play(url: str, editors: list[Page], seconds: float, tokenizer: Tokenizer, order: str) -> Seen:
    """All of them at once."""
    seen = Seen()
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        until = time.monotonic() + seconds
        typists = [Typist(number, page, client, tokenizer, seen, order) for number, page in enumerate(editors)]
        await asyncio.gather(*(typist.run(until) for typist in typists))
    return seen
