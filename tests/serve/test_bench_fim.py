"""Simulated editors and the server's own part, in front of an engine that is idle: counts, not times."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest
from click.testing import CliRunner

from agspec.cli import group
from agspec.errors import AgspecError
from agspec.fim.vocabulary import FimVocabulary
from agspec.serve.fim.bench import figures
from agspec.serve.fim.family import family_from
from agspec.serve.fim.forced import FAMILY
from agspec.serve.fim.overhead import Idle, overhead
from agspec.serve.fim.routes import FimRoutes
from agspec.serve.fim.service import FimService
from agspec.serve.fim.typist import OPEN, Page, Seen, Typist, pages
from agspec.tokens import Tokenizer, load_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_tokenizer("embedded")


def test_a_page_asks_with_what_is_around_the_cursor():
    first, second = pages(2)
    assert first.path != second.path
    at = first.at + 3
    body = first.body(at, "e")
    assert first.text.startswith(body["prefix"] + first.wanted(at))
    assert body["prefix"] + first.text[at : first.end] + body["suffix"][1:] == first.text
    assert len(body["open_files"]) == OPEN
    assert all(file["path"] != first.path.name for file in body["open_files"])
    assert list(first.typed())[:2] == [first.at + 1, first.at + 2]


def test_at_a_lines_end_the_next_line_is_wanted():
    page = Page(pages(1)[0].path, "a = 1\nb = 2\n", 0, "", ())
    assert [page.wanted(at) for at in (0, 3, 5, 6)] == ["a = 1", " 1", "\nb = 2", "b = 2"]


def test_more_editors_than_files_are_an_error():
    with pytest.raises(AgspecError, match=r"want at most .* editors"):
        pages(10_000)


def test_overhead_is_of_every_request_but_the_first(tokenizer: Tokenizer):
    found = overhead(pages(2), tokenizer, requests=3)
    assert {name: len(times) for name, times in found.items()} == {"cpu_ms": 6, "wall_ms": 6}
    assert min(found["cpu_ms"]) > 0


def test_a_typist_types_asks_and_takes(tokenizer: Tokenizer):
    """The backend writes the whole line, as the tape makes a real engine do."""
    (page,) = pages(1)
    family = family_from(str(FAMILY), tokenizer.spec, "m")
    backend = Idle()
    backend.text = page.wanted(page.at)
    routes = FimRoutes(FimService(backend, family, FimVocabulary(tokenizer, family)), models=())
    seen = Seen()

    async def play() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(routes), base_url="http://idle") as client:
            await Typist(0, page, client, tokenizer, seen, "psm").run(time.monotonic() + 1.5)

    asyncio.run(play())
    assert seen.num_keys > 1
    assert seen.num_asked >= len(seen.prompt) > 0
    assert seen.num_keys >= seen.num_asked + seen.num_from_cache + seen.num_given_up
    told = figures(seen)
    assert told["num_answered"] == len(seen.prompt)
    assert told["prompt"]["p50"] > 1000, "both windows are full"
    assert (told["cached_share"], told["cancelled_share"]) == (0.0, 1 - len(seen.prompt) / seen.num_asked)


def test_fim_in_the_place_of_traces_is_a_command_of_its_own():
    told = CliRunner().invoke(group, ["bench", "fim", "--help"])
    assert told.exit_code == 0
    assert "Usage: agspec bench fim" in told.output or "bench fim [OPTIONS]" in told.output
    wrong = CliRunner().invoke(group, ["bench", "fim", "--order", "middle"])
    assert str(wrong.exception) == "--order: want some of psm,spm, got middle"
    assert "--methods" in CliRunner().invoke(group, ["bench", "--help"]).output
