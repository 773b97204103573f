"""Sets of edits: JSON lines with before and after, or a git history."""

from __future__ import annotations

from pathlib import Path

import orjson

from agspec.copyedit.ceiling import Case
from agspec.errors import InputError
from agspec.replay.importers.git import history
from agspec.replay.trace import open_bytes

MEND = "This code has a bug: mend it."
"""What is asked for where a record has a buggy and a canonical solution."""


def read_cases(path: Path, *, part: str = "declared") -> list[Case]:
    """Edits of a file of JSON objects, one a line: {"before", "after"}, or HumanEvalPack's fields.

    ``part``: of records with declaration and body: "body" alone, or "declared": both. Raises InputError.
    """
    found = []
    for number, line in enumerate(open_bytes(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            found.append(_case(orjson.loads(line), number, part))
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
            raise InputError(f"{path}, line {number}: want before and after, got: {error!r:.80}") from error
    if not found:
        raise InputError(f"{path}: want edits, a JSON object a line, found none")
    return found


def read_history(repository: Path, *, max_commits: int | None = None) -> list[Case]:
    """Each file that a commit changes, asked for by the commit's message; raises InputError."""
    found = [
        Case(edit.path, edit.old, edit.new, message)
        for message, edits in history(repository, max_commits=max_commits)
        for edit in edits
        if edit.old is not None and edit.new is not None and message
    ]
    if not found:
        raise InputError(f"{repository}: want commits that change text files, found none")
    return found


def _case(row: dict[str, object], number: int, part: str) -> Case:
    name = str(row.get("path") or row.get("task_id") or number)
    if "before" in row:
        asked = str(row.get("instruction") or row.get("subject") or "Make the change.")
        return Case(name, str(row["before"]), str(row["after"]), asked)
    head = str(row.get("declaration", "")) if part == "declared" else ""
    return Case(name, head + str(row["buggy_solution"]), head + str(row["canonical_solution"]), MEND)
