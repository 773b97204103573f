"""A completion from request to last character: window, other files, prompt, model, stopping, cleaning."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from agspec.fim.completion import Completion
from agspec.fim.context import context
from agspec.fim.families import Family, Order
from agspec.fim.healing import heal
from agspec.fim.languages import Language, language_of
from agspec.fim.outline import closers
from agspec.fim.prompt import FimPrompt, OtherFile, Piece, build, plain
from agspec.fim.stopping import Cursor
from agspec.fim.vocabulary import FimVocabulary
from agspec.fim.window import CHARACTERS, Budget, Window, window
from agspec.latest import Latest
from agspec.serve.bodies import BadRequest
from agspec.serve.fim.asked import Asked
from agspec.serve.fim.backend import Backend, Wanted

BLOCKS = 256
"""Editors' files whose blocks of other files are kept."""
CLOSING = 1 << 16
"""Characters around the cursor that scopes are looked for in, where the suffix is cut."""


@dataclass
class Done:
    """What a completion took; times in ms from the request. ``reason``: stop, length, superseded, typed, ..."""

    reason: str = "stop"
    prepared_ms: float = 0.0
    first_ms: float | None = None
    total_ms: float = 0.0
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_tokens: int = 0
    order: Order = "psm"


@dataclass
class Running:
    """A completion under way. Iterate ``texts`` to its end, then see ``done``."""

    service: FimService
    asked: Asked
    extra: Mapping[str, Any]
    name: str = field(default_factory=lambda: f"fim-{uuid4().hex}")
    done: Done = field(default_factory=Done)

    def __post_init__(self) -> None:
        self._began = time.perf_counter()
        self._superseded = asyncio.Event()
        self._completion, self._wanted = self.service.prepare(self)
        self.done.prepared_ms = self._ms()
        self.service.began(self)

    def supersede(self) -> None:
        """A newer request of the same editor is there: this one ends."""
        self._superseded.set()

    async def texts(self) -> AsyncGenerator[str, None]:
        """Pieces to be shown; raises BackendError."""
        completion, number, late = self._completion, 0, False
        limit = self.asked.most_seconds
        self.done.reason = "cancelled"
        try:
            async with aclosing(self.service.backend.write(self._wanted)) as pieces:
                while (piece := await self._next(pieces)) is not None:
                    number += piece.num_tokens
                    self.done.num_cached_tokens = piece.cached or self.done.num_cached_tokens
                    if text := completion.feed(piece.text):
                        self._first()
                        yield text
                    late = limit is not None and self._ms() > 1000 * limit
                    if completion.ended or late:
                        break
            if self._superseded.is_set():
                self.done.reason = "superseded"
                return
            short = not completion.ended and (late or number >= self._wanted.max_tokens)
            if text := completion.end():
                self._first()
                yield text
            self.done.reason = "length" if short else completion.reason or "stop"
        finally:
            self.done.num_tokens = number
            self.done.total_ms = self._ms()
            self.service.ended(self)

    async def _next(self, pieces: AsyncGenerator[Any, None]) -> Any:
        """The next piece; None where there is none, or a newer request is there first."""
        coming = asyncio.ensure_future(anext(pieces, None))
        waiting = asyncio.ensure_future(self._superseded.wait())
        try:
            await asyncio.wait((coming, waiting), return_when=asyncio.FIRST_COMPLETED)
            return await coming if coming.done() else None
        finally:
            waiting.cancel()
            if not coming.done():
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)

    def _first(self) -> None:
        if self.done.first_ms is None:
            self.done.first_ms = self._ms()

    def _ms(self) -> float:
        return 1000 * (time.perf_counter() - self._began)


class FimService:
    """Completions of one model. ``vocabulary``: None where the backend takes text only."""

    def __init__(
        self, backend: Backend, family: Family, vocabulary: FimVocabulary | None, *, order: Order | None = None
    ) -> None:
        self.backend = backend
        self.family = family
        self._vocabulary = vocabulary
        self._order = order
        self._editors: dict[str, Running] = {}
        self._blocks: Latest[tuple[str, ...], tuple[OtherFile, ...]] = Latest(BLOCKS)

    def began(self, running: Running) -> None:
        """Its editor's older request ends."""
        editor = running.asked.editor
        if editor is not None:
            older = self._editors.get(editor)
            if older is not None:
                older.supersede()
            self._editors[editor] = running

    def ended(self, running: Running) -> None:
        """It runs no more."""
        if self._editors.get(running.asked.editor or "") is running:
            del self._editors[running.asked.editor or ""]

    def count(self, text: str) -> int:
        """Tokens of ``text``, or what it may have."""
        return -(-len(text) // CHARACTERS) if self._vocabulary is None else len(self._vocabulary.text(text))

    def prepare(self, running: Running) -> tuple[Completion, Wanted]:
        """What to do with what the model writes, and what to ask of it; raises BadRequest."""
        asked = running.asked
        language = language_of(asked.language, asked.path)
        cursor = Cursor(asked.prefix + asked.after, asked.suffix, language, asked.single)
        prompt, healed = self._prompt(asked, language)
        size = len(prompt.ids) if self._vocabulary is not None else sum(self.count(p.text) for p in prompt.pieces)
        running.done.num_prompt_tokens, running.done.order = size, prompt.order
        room = self.backend.max_model_len - size
        if room < 1:
            raise BadRequest("prompt", f"want at most {self.backend.max_model_len - 1} tokens, got {size}")
        if self._vocabulary is None:
            self._check_text(asked, prompt)
        completion = Completion(cursor, stops=prompt.stops, typed=asked.typed, healed=healed)
        expression = rf"{re.escape(healed)}[\s\S]*" if healed else None
        wanted = Wanted(
            running.name, prompt, min(room, asked.max_tokens + self.count(healed)), asked.stop, asked.sampling,
            running.extra, expression,
        )  # fmt: skip
        return completion, wanted

    def _check_text(self, asked: Asked, prompt: FimPrompt) -> None:
        """Without a tokenizer a marker in the user's text would be read as one: better no completion."""
        texts = (asked.prefix, asked.suffix, asked.after, *(file.text for file in asked.others))
        markers = {*prompt.stops, *(piece.text for piece in prompt.pieces if piece.marker)}
        for marker in sorted(markers):
            if any(marker in text for text in texts):
                raise BadRequest(
                    "prompt", f"want text without {marker} where no tokenizer is given (--tokenizer), got it"
                )

    def _prompt(self, asked: Asked, language: Language) -> tuple[FimPrompt, str]:
        prefix, healed = (asked.prefix, "") if asked.after else heal(asked.prefix, asked.suffix)
        told = bool(asked.others or asked.symbols)
        kept = self._window(prefix, asked, language, Budget.of(asked.total, others=told))
        if not asked.suffix.strip() and not asked.after and not told:
            return plain(kept.prefix, vocabulary=self._vocabulary, family=self.family), healed
        prompt = build(
            self.family, prefix=kept.prefix, suffix=kept.suffix, path=asked.path, others=self._others(kept, asked),
            repository=asked.repository or "repository", comment=language.comment or "#", order=self._order,
            vocabulary=self._vocabulary,
        )  # fmt: skip
        if asked.after:
            ids = None if self._vocabulary is None else tuple(self._vocabulary.text(asked.after))
            after = Piece(asked.after, marker=False, ids=ids)
            prompt = FimPrompt(
                prompt.family, prompt.order, (*prompt.pieces, after), prompt.stops, prompt.bos, prompt.stop_ids
            )
        return prompt, healed

    def _window(self, prefix: str, asked: Asked, language: Language, budget: Budget) -> Window:
        kept = window(prefix, asked.suffix, budget, self.count)
        if len(kept.suffix) == len(asked.suffix) or language.grammar is None:
            return kept
        near = prefix[-CLOSING // 2 :]
        text = near + asked.suffix[: CLOSING // 2]
        lines = closers(text, len(near), len(near) + len(kept.suffix), language)
        return window(prefix, asked.suffix, budget, self.count, closers=lines) if lines else kept

    def _others(self, kept: Window, asked: Asked) -> tuple[OtherFile, ...]:
        """The block of other files: the same until the window's left edge moves, so that the prefix cache holds."""
        if not asked.others and not asked.symbols:
            return ()
        key = (asked.editor or "", asked.path or "", str(kept.start), *(file.path for file in asked.others))
        found = self._blocks.get(key)
        if found is None or asked.editor is None:
            budget = Budget.of(asked.total, others=True).others
            found = context(kept.prefix, asked.others, budget, self.count, symbols=asked.symbols)
            self._blocks[key] = found
        return found
