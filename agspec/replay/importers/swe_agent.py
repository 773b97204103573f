"""SWE-agent ``.traj``: every assistant message that is not part of a demonstration is a call.

Where the trajectory keeps each step's ``query`` (1.1 on), that is the prompt. Otherwise the prompt is the
agent's ``history`` before the message, demonstrations included, and the elision of old observations is
re-created, since ``history`` keeps them whole:

* ``last_n_observations`` in ``replay_config`` (the 1.x runs with a 0.7 config): all but the first and the
  last n observations become ``Old environment output: (k lines omitted)``, by its n, polling and tags.
* 0.x runs (agent ``primary``, no ``replay_config``): ``Old output omitted (k lines)``, n = 5, unless the
  run's ``args.yaml`` beside the trajectory has an empty list of history processors.

Not re-created: the processors closed_window, remove_regex and image_parsing, and requeries after a
format error, which only ``query`` records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agspec.errors import RecordError
from agspec.replay.importers.records import (
    Importing,
    json_object,
    load,
    message,
    messages,
    optional_text,
    output,
    stem,
    text,
    want,
)
from agspec.replay.trace import Call, Message, Output

_NOT_MODELS = {"replay", "human", "human_thought", "instant_empty_submit"}
_NO_PROCESSORS = re.compile(rb"^\s*history_processors: *\[\] *$", re.MULTILINE)


@dataclass(frozen=True)
class _Elision:
    """How old observations were shortened; n None keeps them all."""

    n: int | None
    template: str = "Old environment output: ({} lines omitted)"
    polling: int = 1


def read(sources: Sequence[Path], importing: Importing) -> Iterator[Call]:
    """Calls of all trajectories, one session each; a trajectory with a bad message is bad as a whole."""
    for path in importing.files(sources, ".traj"):
        with importing.guard():
            trajectory = json_object(load(path), path)
            history = [
                want(item, dict, path, number, "message")
                for number, item in enumerate(want(trajectory.get("history"), list, path, 1, "history"), 1)
            ]
            answers = _queried(trajectory, history, path) or _from_history(trajectory, history, path)
            if not answers:
                raise RecordError(path, max(1, len(history)), "want at least one assistant message, got none")
            session, model = importing.new_session(stem(path, ".traj")), _model(trajectory)
            for prompt, answer in answers:
                yield Call(session=session, messages=prompt, output=answer, model=model, scaffold="swe-agent")


def _queried(
    trajectory: dict[str, Any], history: list[dict[str, Any]], path: Path
) -> list[tuple[tuple[Message, ...], Output]]:
    actions = [item for item in history if item.get("role") == "assistant" and not item.get("is_demo")]
    answers = []
    for number, item in enumerate(want(trajectory.get("trajectory") or [], list, path, 1, "trajectory"), 1):
        step = want(item, dict, path, number, "trajectory step")
        query = want(step.get("query") or [], list, path, number, "query")
        if not any(query):
            continue
        prompt = messages(query, path, number)
        response = want(step.get("response"), str, path, number, "response")
        while actions and message(actions[0], path, number) in prompt:
            actions.pop(0)
        answer = Output(content=response)
        if actions and text(actions[0].get("content"), path, number) == response:
            answer = output(actions.pop(0), path, number)
        if answer.content or answer.tool_calls:
            answers.append((prompt, answer))
    return answers


def _from_history(
    trajectory: dict[str, Any], history: list[dict[str, Any]], path: Path
) -> list[tuple[tuple[Message, ...], Output]]:
    elision = _elision(trajectory, history, path)
    sent = [message(item, path, number) for number, item in enumerate(history, 1)]
    answers = []
    for position, item in enumerate(history):
        if item.get("role") != "assistant" or item.get("is_demo"):
            continue
        before = [i for i in range(position) if history[i].get("agent") == item.get("agent")]
        omitted = _omitted(history, before, elision)
        prompt = tuple(
            sent[i].model_copy(update={"content": elision.template.format(len(sent[i].content.splitlines()))})
            if i in omitted
            else sent[i]
            for i in before
        )
        if not prompt:
            raise RecordError(path, position + 1, "want a message before the assistant's, got none")
        answers.append((prompt, output(item, path, position + 1)))
    return answers


def _omitted(history: list[dict[str, Any]], before: list[int], elision: _Elision) -> set[int]:
    if elision.n is None:
        return set()
    observations = [i for i in before if _is_observation(history[i])]
    kept_from = max(0, len(observations) // elision.polling * elision.polling - elision.n)
    keep = {i for i in observations if "keep_output" in str(history[i].get("tags"))}
    remove = {i for i in observations if "remove_output" in str(history[i].get("tags"))}
    return (set(observations[1:kept_from]) - keep) | remove


def _is_observation(item: dict[str, Any]) -> bool:
    if item.get("is_demo"):
        return False
    if "message_type" in item:
        return bool(item["message_type"] == "observation")
    return bool(item.get("role") == "user")


def _elision(trajectory: dict[str, Any], history: list[dict[str, Any]], path: Path) -> _Elision:
    config = trajectory.get("replay_config")
    if isinstance(config, str):
        config = json_object(config.encode(), path, "replay_config")
    agent = config.get("agent") if isinstance(config, dict) else None
    if isinstance(agent, dict):
        processors = agent.get("history_processors") or agent.get("history_processor") or []
        for processor in processors if isinstance(processors, list) else [processors]:
            if isinstance(processor, dict) and processor.get("type") == "last_n_observations":
                n, polling = processor.get("n", 5), processor.get("polling", 1)
                if not (isinstance(n, int) and isinstance(polling, int) and n > 0 and polling > 0):
                    raise RecordError(path, "replay_config", f"want n and polling of 1 or more, got {n!r}, {polling!r}")
                return _Elision(n=n, polling=polling)
        return _Elision(n=None)
    if not any(item.get("agent") == "primary" for item in history) or _has_no_processors(path):
        return _Elision(n=None)
    return _Elision(n=5, template="Old output omitted ({} lines)")


def _has_no_processors(path: Path) -> bool:
    found = [p for p in (path.with_name("args.yaml"), path.with_name("args.yaml.gz")) if p.is_file()]
    return bool(found and _NO_PROCESSORS.search(load(found[0])))


def _model(trajectory: dict[str, Any]) -> str | None:
    value: Any = trajectory
    for key in ("replay_config", "agent", "model", "name"):
        value = value.get(key) if isinstance(value, dict) else None
    name = optional_text(value)
    return None if name in _NOT_MODELS else name
