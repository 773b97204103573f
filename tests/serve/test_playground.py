"""The playground's page: built once, served beside the API, and nothing left of a build that fails."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import httpx
import pytest

from agspec.errors import AgspecError, InputError
from agspec.serve.playground import pages
from agspec.serve.playground.app import with_page
from agspec.serve.proxy import Forward


def npm(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An npm that does what ``script`` says."""
    program = folder / "npm"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_it_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    npm(tmp_path, 'echo "$1" >>../../../calls; mkdir -p dist; cp index.html dist', monkeypatch)
    folder = pages.built(tmp_path)
    assert (folder / "index.html").read_text() == (pages.SOURCES / "index.html").read_text()
    assert pages.built(tmp_path) == folder
    assert (tmp_path / "calls").read_text().split() == ["ci", "run"]
    assert [path.name for path in (tmp_path / "playground").iterdir()] == [folder.name]


def test_a_build_that_fails_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    npm(tmp_path, "echo no such package >&2; exit 7", monkeypatch)
    with pytest.raises(AgspecError, match="want npm ci to succeed, got 7: no such package"):
        pages.built(tmp_path)
    assert list((tmp_path / "playground").iterdir()) == []


def test_without_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"want npm .* on PATH"):
        pages.built(tmp_path)


def test_the_page_beside_what_is_behind(tmp_path: Path):
    (tmp_path / "index.html").write_text("<title>here</title>")

    def echo(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=httpx.ByteStream(request.url.path.encode()))

    behind = Forward("http://model", httpx.MockTransport(echo))

    async def texts() -> list[tuple[int, str]]:
        transport = httpx.ASGITransport(with_page(tmp_path, behind))
        async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:
            paths = ("/playground/", "/playground/none.js", "/v1/agspec/stats")
            found = [await client.get(path) for path in paths]
            posted = await client.post("/v1/autocomplete", json={})
            moved = await client.get("/playground")
        assert (moved.status_code, moved.headers["location"]) == (307, "/playground/")
        return [(answer.status_code, answer.text) for answer in (*found, posted)]

    assert asyncio.run(texts()) == [
        (200, "<title>here</title>"), (404, "Not Found"), (200, "/v1/agspec/stats"), (200, "/v1/autocomplete"),
    ]  # fmt: skip
