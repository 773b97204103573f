"""Importers: recorded sessions in the formats their tools write, read into one trace.

Each module reads one kind: ``read(sources, importing, ...)`` yields the calls in the order in which they
were made. A directory stands for the kind's files below it, sorted by path.

Example::

    trace, skipped = import_sources("mini-swe-agent", [Path("runs/")], name="runs")
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from agspec.errors import InputError, SettingsError
from agspec.replay.importers.records import Importing, as_text
from agspec.replay.trace import Trace

_MODULES = {
    "mini-swe-agent": "mini_swe_agent",
    "aider": "aider",
    "swe-agent": "swe_agent",
    "openhands": "openhands",
    "claude-code": "claude_code",
    "codex": "codex",
    "openai": "openai",
    "git": "git",
}
KINDS = tuple(_MODULES)
EDIT_FORMATS = ("search-replace", "udiff", "whole", "str-replace")


def module_of(kind: str) -> str:
    """Name of the module that reads ``kind``, one of KINDS."""
    return f"{__name__}.{_MODULES[kind]}"


def import_sources(
    kind: str, sources: Sequence[Path], *, name: str, skip_bad: bool = False, **options: Any
) -> tuple[Trace, list[str]]:
    """Read the sources into one trace; with skip_bad also one line for each bad record left out.

    ``options`` are git's: edit_format, max_commits. Raises InputError (RecordError where a record is to
    blame) on the first bad record, or when no call is left.
    """
    if kind not in _MODULES:
        raise SettingsError(f"kind: want one of {', '.join(KINDS)}, got {kind!r}")
    if options and kind != "git":
        raise SettingsError(f"{', '.join(sorted(options))}: want kind git, got {kind}")
    importing = Importing(skip_bad=skip_bad)
    read = import_module(module_of(kind)).read
    calls = tuple(read(sources, importing, **options))
    if not calls:
        where = ", ".join(str(source) for source in sources)
        last = f"; the last one skipped: {importing.skipped[-1]}" if importing.skipped else ""
        raise InputError(f"{where}: want at least one {kind} call, got none{last}")
    return Trace(name=name, kind=kind, calls=calls, sources=tuple(map(as_text, sources))), importing.skipped
