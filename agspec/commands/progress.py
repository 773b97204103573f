"""A progress bar on stderr for work over two seconds; nothing where stderr is no terminal."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

PATIENCE_S = 2.0


class Progress:
    """``update(done, total, what)`` from the work; the bar appears once ``patience_s`` have passed."""

    def __init__(self, title: str, *, patience_s: float = PATIENCE_S) -> None:
        self._title = title
        self._patience_s = patience_s
        self._bar: RichProgress | None = None
        self._started = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int, total: int, what: str) -> None:
        """Show that ``done`` of ``total`` is done and ``what`` is under way."""
        if self._bar is None:
            if time.monotonic() - self._started < self._patience_s:
                return
            console = Console(stderr=True)
            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
            self._bar = RichProgress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal)
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=total)
        self._bar.update(self._task, completed=done, total=total, description=f"{self._title} {what}")
