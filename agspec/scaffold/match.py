"""Which agent and role a request is of: all profiles' markers in one automaton, one pass a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import ahocorasick

from agspec.draft.emission import Form
from agspec.draft.names import REGION_NAMES
from agspec.errors import InputError
from agspec.messages import Message, Role
from agspec.resources import data_dir
from agspec.scaffold.profile import Emit, Marker, Profile, ToolWire, Where, read_profile
from agspec.scaffold.reads import OpenedFile, opened_files

GENERIC = "generic"
LINE_WINDOW = 4096
"""Characters of a line that a marker's regex sees."""
_WEIGHT: dict[Where, int] = {"header": 3, "system": 2, "tool": 1, "user": 0}
"""Which place is to be believed first: a task's text may quote any agent's prompt."""


@dataclass(frozen=True)
class Scaffold:
    """An agent's profile in use."""

    profile: Profile

    @property
    def name(self) -> str:
        """The profile's name."""
        return self.profile.name

    def opened_files(self, message: Message) -> list[OpenedFile]:
        """Texts that ``message`` shows: a file block, a ``cat -n`` result, a command's output."""
        return opened_files(self.profile.reads, message.role, message.content)

    def forms(self, tool_wire: ToolWire) -> tuple[Form, ...]:
        """Every form in which the agent's edit formats carry a file, on a model with this tool wire."""
        return _forms(self.profile.emits, tool_wire)


@dataclass(frozen=True)
class Match:
    """What a request was told to be. ``emits``: the edit formats in use, as far as markers tell.

    ``because``: the agent's markers that were found, the strongest first.
    """

    scaffold: Scaffold
    role: Role
    emits: tuple[Emit, ...] = field(repr=False)
    because: tuple[Marker, ...] = field(default=(), repr=False)

    def forms(self, tool_wire: ToolWire) -> tuple[Form, ...]:
        """As ``Scaffold.forms``, for this request's edit formats alone."""
        return _forms(self.emits, tool_wire)


def _forms(emits: Iterable[Emit], tool_wire: ToolWire) -> tuple[Form, ...]:
    return tuple(dict.fromkeys(form for emit in emits for form in emit.forms_on(tool_wire)))


@dataclass(frozen=True)
class Profiles:
    """All profiles at hand, by name."""

    by_name: Mapping[str, Scaffold]

    def get(self, name: str) -> Scaffold:
        """The scaffold of that name; InputError lists those there are."""
        try:
            return self.by_name[name]
        except KeyError:
            raise InputError(f"want a scaffold of {', '.join(sorted(self.by_name))}, got {name!r}") from None

    def classify(
        self, messages: Sequence[Message], *, tools: Sequence[str] = (), headers: Mapping[str, str] | None = None
    ) -> Match:
        """Agent and role of a request; the strongest marker wins.

        Strength: priority, then where it was found (header, system, tool, user), then length.
        """
        hits = list(self._hits(messages, tools, headers or {}))
        ranked = sorted(hits, key=lambda hit: _strength(hit.marker), reverse=True)
        told = [hit for hit in ranked if hit.emit is None]
        scaffold = self.get(told[0].scaffold if told else GENERIC)
        mine = [hit for hit in told if hit.scaffold == scaffold.name]
        roles = [hit.marker.role for hit in mine if hit.marker.role is not None]
        used = {hit.emit for hit in hits if hit.scaffold == scaffold.name and hit.emit is not None}
        if roles:
            role = roles[0]
        elif mine:
            role = scaffold.profile.role
        else:
            role = "coder" if tools or any(m.tool_calls or m.role == "tool" for m in messages) else "chat"
        because = tuple(dict.fromkeys(hit.marker for hit in mine))
        return Match(scaffold, role, _emits_in_use(scaffold.profile.emits, used), because)

    @cached_property
    def _automaton(self) -> Any:
        entries: dict[str, list[_Entry]] = {}
        for name, scaffold in self.by_name.items():
            for marker in scaffold.profile.match:
                entries.setdefault(marker.text, []).append(_Entry(name, marker, None))
            for index, emit in enumerate(scaffold.profile.emits):
                if emit.when is not None:
                    entries.setdefault(emit.when.text, []).append(_Entry(name, emit.when, index))
        automaton = ahocorasick.Automaton()
        for text, found in entries.items():
            automaton.add_word(text, tuple(found))
        automaton.make_automaton()
        return automaton

    @property
    def region_markers(self) -> list[tuple[bytes, list[int]]]:
        """Texts of all agents that begin a region, and the region that follows each, in order of REGION_NAMES."""
        follows: dict[str, list[int]] = {}
        for scaffold in self.by_name.values():
            for mark in scaffold.profile.regions:
                regions = follows.setdefault(mark.text, list(range(len(REGION_NAMES))))
                for within in mark.within:
                    regions[REGION_NAMES.index(within)] = REGION_NAMES.index(mark.to)
        return [(text.encode(), regions) for text, regions in follows.items()]

    def _hits(self, messages: Sequence[Message], tools: Sequence[str], headers: Mapping[str, str]) -> Iterator[_Entry]:
        """Each entry that stands; it is tried once a text, one with a regex once a line."""
        for where, text in _places(messages, tools, headers):
            tried: set[tuple[_Entry, int]] = set()
            for last, found in self._automaton.iter(text):
                for entry in found:
                    start = last + 1 - len(entry.marker.text)
                    line = 0 if entry.marker.regex is None else _line_start(text, start)
                    if line is not None and entry.marker.where == where and (entry, line) not in tried:
                        tried.add((entry, line))
                        if _stands(entry.marker, text, start, line):
                            yield entry


@dataclass(frozen=True)
class _Entry:
    scaffold: str
    marker: Marker
    emit: int | None
    """Index of the edit format whose ``when`` the marker is."""


def _places(
    messages: Sequence[Message], tools: Sequence[str], headers: Mapping[str, str]
) -> Iterator[tuple[Where, str]]:
    for message in messages:
        if message.role in ("system", "developer"):
            yield "system", message.content
    for message in messages:
        if message.role == "user":
            yield "user", message.content
            break
    for tool in tools:
        yield "tool", tool
    for name, value in headers.items():
        yield "header", f"{name.lower()}: {value}"


def _line_start(text: str, start: int) -> int | None:
    """Where the line that ``start`` stands in begins; None where a regex that begins there would not see ``start``."""
    newline = text.rfind("\n", max(0, start - LINE_WINDOW), start)
    return newline + 1 if newline >= 0 or start < LINE_WINDOW else None


def _stands(marker: Marker, text: str, start: int, line: int) -> bool:
    if marker.where == "tool":
        return len(text) == len(marker.text)
    if marker.where == "header" and start:
        return False
    return marker.regex is None or marker.regex.match(text, line, min(len(text), line + LINE_WINDOW)) is not None


def _strength(marker: Marker) -> tuple[int, int, int]:
    return marker.priority, _WEIGHT[marker.where], len(marker.text)


def _emits_in_use(emits: tuple[Emit, ...], used: set[int]) -> tuple[Emit, ...]:
    """Those whose marker was found; else those that need none; else all."""
    found = tuple(emit for index, emit in enumerate(emits) if index in used)
    return found or tuple(emit for emit in emits if emit.when is None) or emits


def load_profiles(*extra: Path) -> Profiles:
    """The shipped profiles and those in ``extra`` folders; a later one of the same name replaces an earlier.

    >>> sorted(load_profiles().by_name)[:5]
    ['aider', 'autocoderover', 'claude-code', 'cline', 'codex']
    """
    return _load(extra) if extra else _shipped()


@cache
def _shipped() -> Profiles:
    return _load(())


def _load(extra: tuple[Path, ...]) -> Profiles:
    by_name: dict[str, Scaffold] = {}
    for folder in (data_dir("scaffolds"), *extra):
        if not folder.is_dir():
            raise InputError(f"{folder}: want a folder of profiles, got none")
        for path in sorted(folder.glob("*.toml")):
            profile = read_profile(path)
            by_name[profile.name] = Scaffold(profile)
    if GENERIC not in by_name:
        raise InputError(f"{data_dir('scaffolds')}: want a profile named {GENERIC!r}, got none")
    return Profiles(by_name)
