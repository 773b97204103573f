"""Families of recorded sessions, read from a folder laid out as ``shared/traces`` is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from agspec.draft.emission import Form
from agspec.replay.importers import import_sources
from agspec.replay.plan import PlannedCall, Planner
from agspec.replay.render import ToolWire
from agspec.replay.trace import Call, Trace
from agspec.scaffold import Profiles, Scaffold, load_profiles
from agspec.tokens import Tokenizer

LARGE = 10_000
"""Output tokens from which a family counts in the mean."""
Change = Literal["one role", "raw form only"]
"""What may be done to the calls before they are replayed."""


@dataclass(frozen=True)
class Source:
    """Where a family lies below the folder of traces, and how it is read."""

    name: str
    kind: str
    paths: tuple[str, ...]
    wires: tuple[ToolWire, ...] = ("json", "raw")
    by_chat: bool = False


SOURCES = (
    Source("mini-swe-agent", "mini-swe-agent", ("mini-swe-agent",)),
    Source("aider", "aider", ("aider-llm-history",), wires=("json",), by_chat=True),
    Source("aider-edits", "openai", ("aider-edits",), wires=("json",)),
    Source("swe-agent", "swe-agent", ("swe-agent-demos",)),
    Source(
        "openhands", "openhands", ("openhands-sdk-llm-fixtures", "openhands-integration-mock-2024/mock.tar.gz")
    ),
)  # fmt: skip
"""Aider calls no tools: its text is the same on both wires and is counted once."""


@dataclass(frozen=True, eq=False)
class Family:
    """Sessions of one kind on one tool wire. ``base``: the sessions' name, shared by both wires."""

    name: str
    base: str
    calls: tuple[PlannedCall, ...]

    @cached_property
    def sessions(self) -> tuple[str, ...]:
        """Sessions in order of first appearance."""
        return tuple(dict.fromkeys(call.session for call in self.calls))

    @cached_property
    def output_tokens(self) -> int:
        """Tokens that the model wrote."""
        return sum(int(call.tape.size) for call in self.calls)

    @property
    def in_mean(self) -> bool:
        """Whether it is large enough to count."""
        return self.output_tokens >= LARGE

    def half(self, which: int) -> list[PlannedCall]:
        """Calls of every other session: 0 the first, third, ... of them, 1 the others."""
        mine = set(self.sessions[which::2])
        return [call for call in self.calls if call.session in mine]


def names(sources: Sequence[Source] = SOURCES) -> dict[str, tuple[Source, ToolWire]]:
    """Family name -> its source and tool wire."""
    return {
        f"{source.name} {wire}" if len(source.wires) > 1 else source.name: (source, wire)
        for source in sources
        for wire in source.wires
    }


def load_family(name: str, folder: Path, tokenizer: Tokenizer, change: Change | None = None) -> Family:
    """The family of that name; raises InputError where its files are absent or broken."""
    source, wire = names()[name]
    trace, _ = import_sources(source.kind, [folder / path for path in source.paths], name=source.name, skip_bad=True)
    if source.by_chat:
        trace = by_chat(trace)
    profiles = raw_only(load_profiles()) if change == "raw form only" else load_profiles()
    calls = Planner(tokenizer, wire, profiles).calls(trace)
    if change == "one role":
        return Family(name, source.name, tuple(replace(call, role="other") for call in calls))
    return Family(name, source.name, tuple(calls))


def fingerprint(name: str, folder: Path) -> str:
    """A hash of the family's files."""
    digest = blake2b(digest_size=8)
    for path in names()[name][0].paths:
        where = folder / path
        for file in sorted(where.rglob("*")) if where.is_dir() else [where]:
            if file.is_file():
                digest.update(file.name.encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


def by_chat(trace: Trace) -> Trace:
    """A log of chats as one session a chat: a call that shows no output of the chat so far begins the next one.

    An editor's call belongs to the architect's chat: its request is the architect's answer.
    """
    calls: list[Call] = []
    chat: list[str] = []
    number = 0
    for call in trace.calls:
        shown = [message.content.strip() for message in call.messages]
        if not any(text.startswith(output) for text in shown for output in chat):
            chat = []
            number += 1
        if call.output.content.strip():
            chat.append(call.output.content.strip())
        calls.append(call.model_copy(update={"session": f"chat {number}"}))
    return trace.model_copy(update={"calls": tuple(calls)})


def raw_only(profiles: Profiles) -> Profiles:
    """The same profiles, with every file kept as it is and in no emission form."""
    changed = {}
    for key, scaffold in profiles.by_name.items():
        emits = tuple(emit.model_copy(update={"forms": (Form(),), "encode": "raw"}) for emit in scaffold.profile.emits)
        changed[key] = Scaffold(scaffold.profile.model_copy(update={"emits": emits}))
    return Profiles(changed)
