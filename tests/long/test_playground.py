"""The playground in Chromium, on the real engine: ghost text, Tab, typing along, cancelling, figures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Route, expect, sync_playwright

from agspec.serve.config import ServeConfig
from agspec.serve.fim.forced import FAMILY, HEADER, MODULE
from agspec.serve.playground.app import PLACE
from agspec.serve.playground.pages import built
from agspec.serve.process import Server
from agspec.settings import Settings
from agspec.tokens import load_tokenizer

pytestmark = pytest.mark.long
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SUGGESTED = "def area(self):\n        return rectangle_area(self.width, self.height)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if shutil.which("npm") is None:
        pytest.skip("npm, which builds the page, is not on PATH")
    config = ServeConfig(fim_family=str(FAMILY), playground=built())
    log = tmp_path_factory.mktemp("playground") / "log"
    flags = ("--max-model-len", "4096", "--max-num-seqs", "4")
    with Server.with_agspec(log, settings=Settings(), config=config, flags=flags, module=MODULE) as one:
        yield one


@pytest.fixture(scope="module")
def page(server: Server) -> Iterator[Page]:
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is on PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


class Forced:
    """Tells each completion its text: what ``text`` has after the prompt's last line, if it goes on from it."""

    def __init__(self) -> None:
        self.text = SUGGESTED
        self.tokenizer = load_tokenizer("embedded")
        self.slow = False

    def __call__(self, route: Route) -> None:
        line = json.loads(route.request.post_data or "{}")["prefix"].rpartition("\n")[2].lstrip()
        text = self.text[len(line) :] if self.text.startswith(line) else ""
        tape = self.tokenizer.encode(text).tolist() * (20 if self.slow else 1)
        headers = {**route.request.headers, HEADER: json.dumps([*tape, self.tokenizer.end_id])}
        route.continue_(headers=headers)


def value(page: Page) -> str:
    text = page.locator(".view-lines").inner_text()
    return text.replace("\u00a0", " ")


def count(page: Page, name: str) -> int:
    return int(page.locator(f'#counts tr[data-name="{name}"] td').nth(1).inner_text())


def test_a_person_types_takes_types_along_and_cancels(server: Server, page: Page) -> None:
    forced = Forced()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.route("**/v1/autocomplete", forced)
    page.goto(server.url + PLACE)
    ghost = page.locator("[class*=ghost-text]").first
    expect(page.locator("#tabs button")).to_have_text(["shapes.py", "areas.py"])

    page.keyboard.type("de")
    expect(ghost).to_be_visible()

    page.keyboard.type("f a")  # along the suggestion: it stays
    expect(ghost).to_be_visible()

    page.keyboard.press("Tab")
    expect(page.locator('#counts tr[data-name="accepted"] td').nth(1)).to_have_text("1")
    assert SUGGESTED in value(page)
    assert count(page, "failed") == 0
    assert page.locator("#latency tr").first.locator("td").nth(1).inner_text() != "-"

    forced.slow = True
    page.keyboard.press("Enter")
    before = count(page, "requested")
    page.keyboard.type("x = ")
    page.wait_for_function(f"Number(document.querySelectorAll('#counts td')[1].textContent) > {before}")
    page.keyboard.type("1")
    page.wait_for_function("Number(document.querySelectorAll('#counts td')[3].textContent) > 0")
    assert server.runs(0, within_s=5), "the engine runs on"
    expect(page.locator("#message")).to_have_text("")
    assert wrong == []
    page.wait_for_function("document.querySelectorAll('#stores tr').length > 0")
