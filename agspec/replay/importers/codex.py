"""Codex session logs (``~/.codex/sessions/**/rollout-*.jsonl``): items of the Responses API, one a line.

Neighbouring items that the model wrote are one reply. Reasoning is recorded encrypted, or as a summary that the model
did not write at that place: it is left out. After a compaction the history begins anew. In logs of 2025 a line is the
item itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agspec.errors import RecordError
from agspec.messages import dicts, joined, response_item
from agspec.replay.importers.records import Importing, json_object, load, optional_text, stem, want
from agspec.replay.trace import Call, Message, Output

ITEMS = ("message", "function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output")


@dataclass
class _Log:
    """A session being read; ``reply``: what the model has said since the last message that was not its own."""

    session: str
    system: list[Message] = field(default_factory=list)
    history: list[Message] = field(default_factory=list)
    reply: list[Message] = field(default_factory=list)
    model: str | None = None
    line: int = 0


def read(sources: Sequence[Path], importing: Importing) -> Iterator[Call]:
    """Calls file by file, in order of their replies."""
    for path in importing.files(sources, ".jsonl"):
        log = _Log("")
        with importing.guard():
            for number, line in enumerate(load(path).split(b"\n"), 1):
                if line.strip():
                    with importing.guard():
                        yield from _line(json_object(line, path, number), path, number, log, importing)
        with importing.guard():
            yield from _flush(log, path)


def _line(record: dict[str, Any], path: Path, number: int, log: _Log, importing: Importing) -> Iterator[Call]:
    kind = record.get("type")
    payload = record if kind in ITEMS else record.get("payload") or {}
    payload = want(payload, dict, path, number, "payload")
    if not log.session:
        named = optional_text(payload.get("id")) or optional_text(record.get("id"))
        log.session = importing.new_session(named or stem(path, ".jsonl"))
    if kind == "session_meta" or kind is None:
        log.system = list(_instructions(payload or record)) or log.system
    elif kind == "turn_context":
        log.model = optional_text(payload.get("model")) or log.model
    elif kind == "compacted":
        yield from _flush(log, path)
        kept = payload.get("replacement_history")
        items = [response_item(item) for item in dicts(kept)]
        summary = optional_text(payload.get("message"))
        log.history = [item for item in items if item] or ([Message(role="user", content=summary)] if summary else [])
    elif kind == "response_item" or kind in ITEMS:
        message = response_item(payload)
        if message is None:
            return
        if message.role == "assistant":
            log.line = log.line if log.reply else number
            log.reply.append(message)
            return
        yield from _flush(log, path)
        log.history.append(message)


def _instructions(meta: dict[str, Any]) -> Iterator[Message]:
    base = meta.get("base_instructions")
    for told in (base.get("text") if isinstance(base, dict) else base, meta.get("instructions")):
        if text := optional_text(told):
            yield Message(role="system", content=text)
            return


def _flush(log: _Log, path: Path) -> Iterator[Call]:
    """The reply under way has ended."""
    reply, log.reply = log.reply, []
    if not reply:
        return
    if not log.history:
        log.history += reply
        raise RecordError(path, log.line, "want a message before the first reply, got none")
    answer = joined(reply)
    yield Call(
        session=log.session,
        messages=(*log.system, *log.history),
        output=Output(content=answer.content, tool_calls=answer.tool_calls),
        model=log.model,
        scaffold="codex",
    )
    log.history += reply
