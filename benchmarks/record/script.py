"""A session's script: which commit it makes, turn by turn, and what the model answers.

A script is a TOML file. ``commit`` is the state that the session arrives at. It starts from ``parent`` or,
where there is none, from the commit with the script's own edits undone, last one first. An edit is
``{path, old, new}``: ``old`` stands once in the file before the edit, "" makes a new file.
"""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from benchmarks.record.server import Answer

FENCES = {".py": "python", ".toml": "toml", ".md": "markdown"}


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Edit(_Record):
    """A change of one file's text."""

    path: str
    old: str = ""
    new: str

    def undo(self, text: str) -> str:
        """The file's text before the edit."""
        if text.count(self.new) != 1:
            raise ValueError(f"{self.path}: want the new text once, got it {text.count(self.new)} times:\n{self.new}")
        return text.replace(self.new, self.old)

    def block(self) -> str:
        """As Aider's diff format writes it."""
        language = FENCES.get(Path(self.path).suffix, "")
        return f"{self.path}\n```{language}\n<<<<<<< SEARCH\n{self.old}=======\n{self.new}>>>>>>> REPLACE\n```"


class Turn(_Record):
    """One exchange. Aider: ``say`` is typed, ``reply``, the edits' blocks and ``close`` are answered, then the
    commit message that Aider asks for; a turn without a reply types a command of Aider's own, such as /add.
    mini-swe-agent: ``reply`` and the command are answered.
    """

    say: str = ""
    reply: str = ""
    close: str = ""
    edits: tuple[Edit, ...] = ()
    commit: str | None = None
    command: str | None = None

    def answers(self) -> list[Answer]:
        """What the server says in this turn."""
        if self.command is not None:
            return [Answer(self.reply.strip(), (("bash", {"command": self.command.removesuffix("\n")}),))]
        if not self.reply:
            return []
        parts = [self.reply.strip(), *(edit.block() for edit in self.edits), self.close.strip()]
        answer = Answer("\n\n".join(part for part in parts if part) + "\n")
        return [answer] if self.commit is None else [answer, Answer(self.commit)]


class Script(_Record):
    """One session."""

    client: Literal["aider", "mini-swe-agent"]
    title: str
    commit: str
    parent: str | None = None
    files: tuple[str, ...] = Field(description="files that the session changes; Aider: those in the chat at first")
    config: str = Field("mini.yaml", description="mini-swe-agent's configuration")
    task: str = Field("", description="what mini-swe-agent is told to do")
    made: tuple[Edit, ...] = Field((), description="mini-swe-agent: what its commands change in all")
    turns: tuple[Turn, ...]

    @property
    def edits(self) -> list[Edit]:
        """All edits in order."""
        return [*self.made, *(edit for turn in self.turns for edit in turn.edits)]

    def answers(self) -> list[Answer]:
        """What the server says, request by request."""
        return [answer for turn in self.turns for answer in turn.answers()]


def read_script(path: Path) -> Script:
    """A session's script from its file."""
    values: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    return Script.model_validate(values)


def lay_out(script: Script, source: Path, folder: Path, *, environment: dict[str, str]) -> None:
    """The state before the session as a new repository in ``folder``, one commit; git sees ``environment``."""
    folder.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "-C", str(source), "archive", script.parent or script.commit], check=True, capture_output=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    if script.parent is None:
        for edit in reversed(script.edits):
            path = folder / edit.path
            before = edit.undo(path.read_text("utf-8"))
            if edit.old:
                path.write_text(before, "utf-8")
            else:
                path.unlink()
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "State before the session"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True, env=environment)


def check_outcome(script: Script, source: Path, folder: Path) -> None:
    """The session's edited files are now as the commit has them; ValueError for the first that is not."""
    for name in sorted({edit.path for edit in script.edits} | set(script.files)):
        shown = subprocess.run(
            ["git", "-C", str(source), "show", f"{script.commit}:{name}"], check=True, capture_output=True, text=True
        )
        if (folder / name).read_text("utf-8") != shown.stdout:
            raise ValueError(f"{name}: want it as in {script.commit} after the session, got another text")
