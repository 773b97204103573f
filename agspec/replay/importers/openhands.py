"""OpenHands logs: SDK request logs (JSON) and the prompt_NNN.log / response_NNN.log pairs of 2024.

SDK: one JSON file a request. Native tools: ``messages`` and ``response``. Without native tools the log's
``messages`` are the converted ones that the model read (``raw_messages`` are those before the
conversion), and ``raw_response`` is what it wrote, unless its tool calls were lost (``[{}]``): then
``response``. Session: an id in the log's kwargs, else the folder. Order: the ``timestamp``.

Pairs: one folder a session. Messages are separated by a line of ten dashes and carry no role: the first of
several is the system's, one that begins with an earlier response of the session is the assistant's
(whitespace apart: the client re-joins it), all others the user's. A last prompt without response is no call.

A source is a folder, a tar archive, or single files.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

from agspec.errors import RecordError
from agspec.replay.importers.records import (
    Importing,
    decode,
    json_object,
    load,
    messages,
    optional_text,
    output,
    response_message,
    tools,
)
from agspec.replay.trace import Call, Message, Output

_PAIR = re.compile(r"(prompt|response)_(\d+)\.log(?:\.gz)?")
_CONVERSATION_DUMP = "llm-message.json"
_SEPARATOR = re.compile(r"(?:\r?\n){2}-{10}(?:(?:\r?\n){2}|(?:\r?\n)?\Z)")


def read(sources: Sequence[Path], importing: Importing) -> Iterator[Call]:
    """Calls by session, sessions in order of path."""
    pairs: dict[PurePath, dict[int, dict[str, tuple[PurePath, bytes]]]] = {}
    logs: dict[tuple[PurePath, str | None], list[tuple[float, PurePath, Call]]] = {}
    for path, data in _files(sources, importing):
        with importing.guard():
            pair = _PAIR.fullmatch(path.name)
            if pair:
                pairs.setdefault(path.parent, {}).setdefault(int(pair[2]), {})[pair[1]] = (path, data)
            else:
                log = json_object(data, path)
                key = (path.parent, _session_id(log))
                logs.setdefault(key, []).append((_timestamp(log), path, _log_call(log, path)))
    for (folder, session_id), found in sorted(logs.items(), key=lambda item: (item[0][0], item[0][1] or "")):
        session = importing.new_session(session_id or folder.name)
        for _, _, call in sorted(found, key=lambda item: item[:2]):
            yield call.model_copy(update={"session": session})
    for folder, numbered in sorted(pairs.items()):
        session = importing.new_session("/".join(folder.parts[-2:]))
        yield from _pair_calls(session, numbered, importing)


def _files(sources: Sequence[Path], importing: Importing) -> Iterator[tuple[PurePath, bytes]]:
    for source in sources:
        with importing.guard():
            if source.is_dir():
                for path in importing.files([source], ".log", ".json"):
                    if _is_log(path.name):
                        yield path, load(path)
                continue
            data = load(source)
            if data[257:262] == b"ustar" or source.name.endswith((".tar", ".tar.gz", ".tgz")):
                yield from _archived(source, data)
            else:
                yield source.resolve(), data


def _is_log(name: str) -> bool:
    plain = name.removesuffix(".gz")
    return bool(_PAIR.fullmatch(name)) or (plain.endswith(".json") and not plain.endswith(_CONVERSATION_DUMP))


def _archived(source: Path, data: bytes) -> Iterator[tuple[PurePath, bytes]]:
    found = False
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in sorted(archive.getmembers(), key=lambda member: member.name):
                file = archive.extractfile(member) if _is_log(PurePath(member.name).name) else None
                if file is not None:
                    found = True
                    yield PurePath(source) / member.name, file.read()
    except tarfile.TarError as error:
        raise RecordError(source, 1, f"want a whole tar archive, got a broken one ({error})") from error
    if not found:
        raise RecordError(source, 1, "want prompt_NNN.log or JSON request logs in the archive, got none")


def _log_call(log: dict[str, Any], path: PurePath) -> Call:
    prompt = messages(log.get("messages"), path, 1)
    answer = response_message(log.get("response"), path, 1)
    defined = tools(log.get("tools"), path, 1)
    if log.get("raw_response") is not None:
        defined = ()
        raw = response_message(log["raw_response"], path, 1)
        if raw.get("tool_calls") != [{}]:
            answer = raw
    return Call(
        session="",
        messages=prompt,
        output=output(answer, path, 1),
        model=optional_text(log["response"].get("model")),
        scaffold="openhands",
        tools=defined,
    )


def _session_id(log: dict[str, Any]) -> str | None:
    kwargs = log.get("kwargs")
    if not isinstance(kwargs, dict):
        return None
    extra = kwargs.get("extra_body")
    metadata = extra.get("metadata") if isinstance(extra, dict) else None
    named = metadata.get("session_id") if isinstance(metadata, dict) else None
    return optional_text(kwargs.get("prompt_cache_key")) or optional_text(named)


def _timestamp(log: dict[str, Any]) -> float:
    value = log.get("timestamp")
    return float(value) if isinstance(value, int | float) else 0.0


def _pair_calls(
    session: str, numbered: dict[int, dict[str, tuple[PurePath, bytes]]], importing: Importing
) -> Iterator[Call]:
    responses: list[str] = []
    for number, pair in sorted(numbered.items()):
        with importing.guard():
            if "prompt" not in pair:
                path = pair["response"][0]
                raise RecordError(path, number, f"want {path.name.replace('response', 'prompt')} beside it, got none")
            path = pair["prompt"][0]
            if "response" not in pair:
                if number == max(numbered):
                    continue
                raise RecordError(path, number, f"want {path.name.replace('prompt', 'response')} beside it, got none")
            prompt = _prompt(decode(pair["prompt"][1], path, number), responses)
            if not prompt:
                raise RecordError(path, number, "want at least one message, got none")
            response = decode(pair["response"][1], pair["response"][0], number)
            responses.append(response)
            yield Call(session=session, messages=prompt, output=Output(content=response), scaffold="openhands")


def _prompt(logged: str, responses: list[str]) -> tuple[Message, ...]:
    parts = [part for part in _SEPARATOR.split(logged) if part.strip()]
    earlier = tuple(words for words in map(_words, responses) if words)
    roles = ["assistant" if earlier and _words(part).startswith(earlier) else "user" for part in parts]
    if len(parts) > 1:
        roles[0] = "system"
    return tuple(Message(role=role, content=part) for role, part in zip(roles, parts, strict=True))


def _words(text: str) -> str:
    return " ".join(text.split())
