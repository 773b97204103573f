"""Work for a client that may leave before it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, TypeVar

Result = TypeVar("Result")


async def unless_gone(
    work: Coroutine[Any, Any, Result], receive: Callable[[], Awaitable[MutableMapping[str, Any]]]
) -> Result | None:
    """The result of ``work``; None, and the work cancelled, where the client has left before it was done."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
    return working.result() if working.done() and not working.cancelled() else None


async def _gone(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
