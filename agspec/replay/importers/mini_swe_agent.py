"""mini-swe-agent ``.traj.json``: every assistant message is a call whose prompt is all before it.

The history is append-only, so a session that stopped half-way gives the calls that were answered. The
closing ``exit`` message was never sent. Session: ``instance_id``, else the file's stem.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agspec.errors import RecordError
from agspec.replay.importers.records import Importing, json_object, load, message, optional_text, output, stem, want
from agspec.replay.trace import Call, Message

_SUFFIX = ".traj.json"


def read(sources: Sequence[Path], importing: Importing) -> Iterator[Call]:
    """Calls of all trajectories; a trajectory with a bad message is bad as a whole."""
    for path in importing.files(sources, _SUFFIX):
        with importing.guard():
            yield from _calls(path, importing)


def _calls(path: Path, importing: Importing) -> list[Call]:
    trajectory = json_object(load(path), path)
    recorded = want(trajectory.get("messages"), list, path, 1, "messages")
    model = _model(trajectory)
    prompt: list[Message] = []
    answers = []
    for number, item in enumerate(recorded, 1):
        sent = message(item, path, number)
        if sent.role == "exit":
            continue
        if sent.role == "assistant":
            answers.append((tuple(prompt), output(item, path, number)))
        prompt.append(sent)
    if not answers:
        raise RecordError(path, max(1, len(recorded)), "want at least one assistant message, got none")
    session = importing.new_session(optional_text(trajectory.get("instance_id")) or stem(path, _SUFFIX, ".json"))
    return [
        Call(session=session, messages=messages, output=answer, model=model, scaffold="mini-swe-agent")
        for messages, answer in answers
    ]


def _model(trajectory: dict[str, Any]) -> str | None:
    value: Any = trajectory
    for key in ("info", "config", "model", "model_name"):
        value = value.get(key) if isinstance(value, dict) else None
    return optional_text(value)
