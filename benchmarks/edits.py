"""Recorded edits as turns of agents: the file as each agent reads it, the edit as each writes it.

Edits (``{"path", "before", "after"}`` a line, gzip JSONL) are what people committed; the turns around them are made by
the formats in the profiles of ``scaffolds/``. What an agent must copy to make its edit is told apart: the old text of a
replacement, the context and removed lines of a diff.
"""

from __future__ import annotations

import difflib
import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agspec.replay.plan import PlannedCall, Planner
from agspec.replay.render import render_output
from agspec.replay.trace import Call, Message, Output, ToolCall, Trace
from agspec.scaffold import Profiles
from agspec.tokens import Tokenizer

CONTEXT = 3
"""Unchanged lines around a change."""


@dataclass(frozen=True)
class Edit:
    """A file before and after."""

    path: str
    before: str
    after: str

    def hunks(self) -> Iterator[list[tuple[str, str]]]:
        """Changes with their context, as lines marked " ", "-" or "+"."""
        old, new = self.before.splitlines(), self.after.splitlines()
        for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
            lines: list[tuple[str, str]] = []
            for kind, i, j, k, m in group:
                if kind == "equal":
                    lines += [(" ", line) for line in old[i:j]]
                else:
                    lines += [("-", line) for line in old[i:j]] + [("+", line) for line in new[k:m]]
            yield lines


@dataclass(frozen=True)
class Turn:
    """What an agent sees and writes; ``copied``: of the output, pieces that stand in the file, in order."""

    messages: tuple[Message, ...]
    output: Output
    copied: tuple[str, ...]


def numbered(text: str, separator: str = "\t") -> str:
    """As ``cat -n`` shows it."""
    return "".join(f"{i:6}{separator}{line}\n" for i, line in enumerate(text.splitlines(), 1))


def escaped(text: str) -> str:
    """As it stands in a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def replaced(lines: Sequence[tuple[str, str]], marks: str) -> str:
    """The lines of a hunk that carry one of ``marks``, as one text."""
    return "\n".join(line for mark, line in lines if mark in marks)


def by_replacement(
    edit: Edit, *, system: str, shown: str, tool: str, keys: tuple[str, str, str], first: dict[str, str]
) -> Turn:
    """One call of ``tool`` a hunk, with ``first`` and then path, old and new text under ``keys``."""
    calls, copied = [], []
    for lines in edit.hunks():
        old, new = replaced(lines, " -"), replaced(lines, " +")
        arguments = {**first, **dict(zip(keys, (f"/repo/{edit.path}", old, new), strict=True))}
        calls.append(ToolCall(name=tool, arguments=json.dumps(arguments)))
        copied.append(escaped(old))
    messages = (
        Message(role="system", content=system),
        Message(role="user", content=f"Please change {edit.path}."),
        Message(role="assistant", tool_calls=(ToolCall(name=tool, arguments=json.dumps({keys[0]: edit.path})),)),
        Message(role="tool", content=shown),
    )
    return Turn(messages, Output(content="I change it.", tool_calls=tuple(calls)), tuple(copied))


def patch(edit: Edit) -> tuple[str, list[str]]:
    """Hunks as diff lines, each begun by @@; those that stand in the file."""
    text, copied = "", []
    for lines in edit.hunks():
        text += "@@\n" + "".join(f"{mark}{line}\n" for mark, line in lines)
        copied += [f"{mark}{line}" for mark, line in lines if mark != "+"]
    return text, copied


def openhands(edit: Edit) -> Turn:
    """str_replace in JSON; the file is read by ``cat -n``."""
    view = f"Here's the result of running `cat -n` on /repo/{edit.path}:\n{numbered(edit.before)}"
    return by_replacement(
        edit, system="You are OpenHands agent, a helpful assistant.", shown=view, tool="file_editor",
        keys=("path", "old_str", "new_str"), first={"command": "str_replace"},
    )  # fmt: skip


def swe_agent(edit: Edit) -> Turn:
    """As OpenHands, by other names; tabs are shown as spaces."""
    text = numbered(edit.before.expandtabs())
    view = f"OBSERVATION:\nHere's the result of running `cat -n` on /repo/{edit.path}:\n{text}"
    return by_replacement(
        edit, system="You are a helpful assistant that can interact with a computer to solve tasks.",
        shown=view, tool="str_replace_editor", keys=("path", "old_str", "new_str"),
        first={"command": "str_replace"},
    )  # fmt: skip


def claude_code(edit: Edit) -> Turn:
    """Edit in JSON; the file is read with arrows after its line numbers."""
    return by_replacement(
        edit, system="You are Claude Code, Anthropic's official CLI for Claude.", shown=numbered(edit.before, "→"),
        tool="Edit", keys=("file_path", "old_string", "new_string"), first={},
    )  # fmt: skip


def codex(edit: Edit) -> Turn:
    """A patch as a tool's argument, in JSON; the file is read raw."""
    text, copied = patch(edit)
    whole = f"*** Begin Patch\n*** Update File: {edit.path}\n{text}*** End Patch"
    shown = f"Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{edit.before}"
    messages = (
        Message(role="system", content="You are a coding agent running in the Codex CLI."),
        Message(role="user", content=f"Please change {edit.path}."),
        Message(role="tool", content=shown),
    )
    call = ToolCall(name="apply_patch", arguments=json.dumps({"input": whole}))
    return Turn(
        messages, Output(tool_calls=(call,)), tuple(json.dumps(line, ensure_ascii=False)[1:-1] for line in copied)
    )


def aider(edit: Edit, system: str, output: str, copied: Sequence[str]) -> Turn:
    """Aider shows files raw."""
    file = f"{edit.path}\n```\n{edit.before}```\n"
    shown = f"I have *added these files to the chat* so you can go ahead and edit them.\n\n{file}"
    messages = (
        Message(role="system", content=f"Act as an expert software developer.\n{system}"),
        Message(role="user", content=shown),
        Message(role="assistant", content="Ok."),
        Message(role="user", content=f"Please change {edit.path}."),
    )
    return Turn(messages, Output(content=output), tuple(copied))


def aider_udiff(edit: Edit) -> Turn:
    """A unified diff."""
    text, copied = patch(edit)
    return aider(
        edit, "write out the changes similar to a unified diff like `diff -U0` would produce.",
        f"```diff\n--- {edit.path}\n+++ {edit.path}\n{text}```\n", copied,
    )  # fmt: skip


def aider_diff(edit: Edit) -> Turn:
    """Search and replace blocks: written as the file is read."""
    text, copied = "", []
    for lines in edit.hunks():
        old, new = replaced(lines, " -"), replaced(lines, " +")
        text += f"{edit.path}\n```python\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n```\n\n"
        copied.append(old)
    return aider(edit, "Describe each change with a *SEARCH/REPLACE block* per the examples below.", text, copied)


FORMATS: dict[str, Callable[[Edit], Turn]] = {
    "openhands str_replace": openhands,
    "swe-agent str_replace": swe_agent,
    "claude-code Edit": claude_code,
    "codex apply_patch": codex,
    "aider udiff": aider_udiff,
    "aider diff (written as read)": aider_diff,
}


def read_edits(path: Path, *, most_characters: int = 30_000) -> list[Edit]:
    """Edits of plain ASCII files that are not too long."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    edits = [Edit(row["path"], row["before"], row["after"]) for row in rows]
    return [e for e in edits if (e.before + e.after).isascii() and 0 < len(e.before) < most_characters]


Marked = tuple[PlannedCall, npt.NDArray[np.bool_]]


def planned(
    edits: Sequence[Edit], write: Callable[[Edit], Turn], tokenizer: Tokenizer, profiles: Profiles
) -> list[Marked]:
    """Each turn ready for replay, a session of its own, and which tokens of its tape are copied."""
    found = []
    for number, turn in enumerate(map(write, edits)):
        call = Call(session=f"edit {number}", messages=turn.messages, output=turn.output)
        (plan,) = Planner(tokenizer, "json", profiles).calls(Trace(name="edits", kind="openai", calls=(call,)))
        found.append((plan, copied_tokens(plan, render_output(turn.output, "json"), turn.copied, tokenizer)))
    return found


def copied_tokens(call: PlannedCall, text: str, copied: Sequence[str], tokenizer: Tokenizer) -> npt.NDArray[np.bool_]:
    """bool [tape]: tokens that begin in one of the pieces ``copied`` of ``text``, which the tape writes."""
    inside = np.zeros(len(text) + 1, np.bool_)
    at = 0
    for piece in copied:
        at = text.index(piece, at)
        inside[at : at + len(piece)] = True
        at += len(piece)
    ends = np.cumsum([len(tokenizer.decode(call.tape[i : i + 1])) for i in range(call.tape.size - 1)])
    if ends.size and ends[-1] != len(text):
        raise ValueError(f"want a tape of {len(text)} characters, got {ends[-1]}")
    starts = np.concatenate(([0], ends))
    return inside[starts[: call.tape.size]]
