"""The page in front of an app."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

PLACE = "/playground"


def page(folder: Path) -> StaticFiles:
    """The built page, as an app to be mounted at PLACE."""
    return StaticFiles(directory=folder, html=True)


def with_page(folder: Path, app: Any) -> Starlette:
    """``app``, and the page."""

    async def inside(request: Request) -> RedirectResponse:
        return RedirectResponse(f"{PLACE}/")

    return Starlette(routes=[Route(PLACE, inside), Mount(PLACE, page(folder)), Mount("/", app)])
