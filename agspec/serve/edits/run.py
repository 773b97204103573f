"""An edit on the server's engine: one request a file, its copies spliced, its text handed out as it is known."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from agspec.copyedit.token_machine import Vocabulary
from agspec.copyedit.unfold import Unfolding
from agspec.engine.copies.grammar import room_for_more
from agspec.engine.copies.request import CopyRequest
from agspec.errors import AgspecError
from agspec.serve.edits.body import Counts, EditedFile, Way

MOST_BYTES = 1 << 22
"""Of copies in one result: a loop of them ends here."""


class EditError(AgspecError):
    """An edit that came to no end."""


@dataclass
class Running:
    """A text under way. Iterate ``texts`` to its end, then ask for ``result``.

    ``room``: tokens that program and copied text may have together in the model's context; ``params``: of
    SamplingParams; ``escaped``: copied lines stand in a JSON string.
    """

    engine: Any
    vocabulary: Vocabulary
    path: str
    way: Way
    prompt: Sequence[int]
    sources: Sequence[str]
    name: str
    max_tokens: int
    room: int
    params: Mapping[str, Any]
    extra: dict[str, Any]
    escaped: bool = False
    complete: bool = False

    def __post_init__(self) -> None:
        self._asked = CopyRequest(
            sources=tuple(self.sources) if self.way == "copy" else (), max_tokens=self.max_tokens,
            max_bytes=MOST_BYTES, single=self.way == "whole", escaped=self.escaped,
        )  # fmt: skip
        self._sources = self._asked.files
        self._unfolding = Unfolding(self._sources)
        self._pieces: list[str] = []
        self._counts = Counts()

    async def texts(self) -> AsyncGenerator[str, None]:
        """Pieces of the result, as they are known; raises EditError, or CopyError."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        end = self.vocabulary.end
        closed = asyncio.Event()
        stopped: str | None = None
        async with aclosing(self.engine.generate(self._inputs(closed), self._params(), self.name)) as outputs:
            async for output in outputs:
                came = output.outputs[0]
                if came.token_ids:
                    self._counts.decode_steps += 1
                    self._counts.generated_tokens += sum(token != end for token in came.token_ids)
                    data = self.vocabulary.bytes_of(came.token_ids)
                    text = decoder.decode(self._unfolding.feed(data))
                    if text:
                        self._pieces.append(text)
                        yield text
                    self.complete = came.token_ids[-1] == end
                stopped = came.finish_reason or stopped
                if self.complete or stopped == "length":
                    closed.set()
        self._check()
        text = decoder.decode(b"", final=True)
        if text:
            self._pieces.append(text)
            yield text

    @property
    def counts(self) -> Counts:
        """What the text took, once it has ended."""
        counts = self._counts
        counts.forwards = counts.decode_steps + len(self._unfolding.copies)
        counts.steps_saved = len(self.vocabulary.encode("".join(self._pieces).encode())) + 1 - counts.decode_steps
        return counts

    def result(self) -> EditedFile:
        """The file and what it took."""
        program = self._unfolding.program.decode("utf-8", "replace")
        return EditedFile(
            path=self.path, edit=self.way, text="".join(self._pieces), program=program, counts=self.counts
        )  # fmt: skip

    def _check(self) -> None:
        """Raises EditError where the program ended for want of room: what it wrote is not the whole file."""
        self._counts.copied_tokens = copied = sum(map(len, map(self.vocabulary.encode, self._unfolding.copies)))
        left = min(self.max_tokens, self.room - copied) - self._counts.generated_tokens
        most = sum(map(len, self._unfolding.copies))
        if most > MOST_BYTES:
            raise EditError(f"{self.path}: want at most {MOST_BYTES:,} bytes copied, got {most:,}")
        if not self.complete or left <= room_for_more(self._sources, self.vocabulary):
            raise EditError(
                f"{self.path}: want an edit that ends within {self.max_tokens} tokens (max_tokens) and the model's "
                f"context, got {self._counts.generated_tokens} tokens and no end"
            )

    async def _inputs(self, closed: asyncio.Event) -> AsyncIterator[Any]:
        from vllm import TokensPrompt
        from vllm.engine.protocol import StreamingInput

        yield StreamingInput(prompt=TokensPrompt(prompt_token_ids=list(self.prompt)))  # type: ignore[arg-type]
        await closed.wait()

    def _params(self) -> Any:
        from vllm.sampling_params import RequestOutputKind

        return self._asked.sampling(**self.params, extra_args=self.extra, output_kind=RequestOutputKind.DELTA)
