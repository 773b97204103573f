"""Claude Code transcripts (``~/.claude/projects/<folder>/*.jsonl``): one content block a line.

Lines with one ``message.id`` are one reply. Sub-agents (``isSidechain``, ``agentId``) are sessions of their own. After
a compaction the history begins anew. The system prompt is not recorded, so requests lack it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agspec.errors import RecordError
from agspec.messages import anthropic_messages, dicts, string
from agspec.replay.importers.records import Importing, json_object, load, optional_text, stem, want
from agspec.replay.trace import Call, Message, Output

SYNTHETIC = "<synthetic>"
"""The model's name on replies that the client made up, as for an API error."""


@dataclass
class _Stream:
    """One conversation of a file; ``reply`` is under way, its blocks come line by line."""

    session: str
    history: list[Message] = field(default_factory=list)
    reply: str | None = None
    model: str | None = None
    blocks: list[Any] = field(default_factory=list)
    line: int = 0


def read(sources: Sequence[Path], importing: Importing) -> Iterator[Call]:
    """Calls file by file, in the order in which their replies began."""
    for path in importing.files(sources, ".jsonl"):
        streams: dict[str, _Stream] = {}
        found: list[tuple[int, Call]] = []
        with importing.guard():
            for number, line in enumerate(load(path).split(b"\n"), 1):
                if line.strip():
                    with importing.guard():
                        found += _line(json_object(line, path, number), path, number, streams, importing)
        for stream in streams.values():
            with importing.guard():
                found += _flush(stream, path)
        yield from (call for _, call in sorted(found, key=lambda item: item[0]))


def _line(
    record: dict[str, Any], path: Path, number: int, streams: dict[str, _Stream], importing: Importing
) -> Iterator[tuple[int, Call]]:
    agent = str(record.get("agentId") or "sidechain") if record.get("isSidechain") else ""
    stream = streams.get(agent)
    if stream is None:
        name = optional_text(record.get("sessionId")) or stem(path, ".jsonl")
        stream = streams[agent] = _Stream(importing.new_session(f"{name}:{agent}" if agent else name))
    kind = record.get("type")
    if kind == "system" and record.get("subtype") == "compact_boundary":
        yield from _flush(stream, path)
        stream.history.clear()
    if kind not in ("user", "assistant"):
        return
    message = want(record.get("message"), dict, path, number, "message")
    if kind == "user":
        yield from _flush(stream, path)
        stream.history += anthropic_messages("user", message.get("content"))
        return
    reply = optional_text(message.get("id")) or f"line {number}"
    if reply != stream.reply:
        yield from _flush(stream, path)
        stream.reply, stream.model, stream.line = reply, optional_text(message.get("model")), number
    content = message.get("content")
    stream.blocks += content if isinstance(content, list) else [{"type": "text", "text": content}]


def _flush(stream: _Stream, path: Path) -> Iterator[tuple[int, Call]]:
    """The reply under way has ended."""
    blocks, stream.blocks, stream.reply = stream.blocks, [], None
    said = list(anthropic_messages("assistant", blocks))
    thinking = "".join(string(block.get("thinking")) for block in dicts(blocks)) or None
    if stream.model == SYNTHETIC or not (said or thinking):
        return
    answer = said[0] if said else Message(role="assistant")
    if not stream.history:
        stream.history.append(answer)
        raise RecordError(path, stream.line, "want a message before the first reply, got none")
    call = Call(
        session=stream.session,
        messages=tuple(stream.history),
        output=Output(content=answer.content, reasoning=thinking, tool_calls=answer.tool_calls),
        model=stream.model,
        scaffold="claude-code",
    )
    yield stream.line, call
    stream.history.append(answer)
