"""Git history: each non-merge commit is a coder turn, oldest first, one session a repository.

The prompt is a chat as aider lays it out: system, the files before the commit, the commit message as the
request. The output is the commit's edit in the chosen format. Only text counts: files over 128 KiB, binary
files, links and submodules are left out, and so are deletions, which the formats cannot say. A commit with
more than 16 files or 256 KiB is no turn. ``max_commits`` takes the newest ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agspec.errors import InputError, RecordError, SettingsError
from agspec.replay.importers import EDIT_FORMATS
from agspec.replay.importers.edits import FileEdit, choose_fence, edit_output
from agspec.replay.importers.records import Importing
from agspec.replay.trace import Call, Message

if TYPE_CHECKING:
    from git import Blob, Commit, Repo

_MAX_FILE_BYTES = 128 * 1024
_MAX_COMMIT_BYTES = 256 * 1024
_MAX_FILES = 16
_REGULAR_FILE_MODES = (0o100644, 0o100755)

_SYSTEM = {
    "search-replace": "Describe each change with a *SEARCH/REPLACE block*.\n",
    "udiff": "Return edits similar to unified diffs that `diff -U0` would produce.\n",
    "whole": "To change a file, output a copy of each file that needs changes.\n",
    "str-replace": "Change files with the tool str_replace_editor.\n",
}
_FILES_HEADER = "I have *added these files to the chat* so you can go ahead and edit them.\n"
_FILES_REPLY = "Ok, any changes I propose will be to those files."
_STR_REPLACE_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "str_replace_editor",
        "description": "Create a file or replace a string that occurs once in it.",
        "parameters": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "enum": ["create", "str_replace"]},
                "path": {"type": "string"},
                "file_text": {"type": "string"},
                "old_str": {"type": "string"},
                "new_str": {"type": "string"},
            },
            "required": ["command", "path"],
        },
    },
}


def read(
    sources: Sequence[Path],
    importing: Importing,
    *,
    edit_format: str = "search-replace",
    max_commits: int | None = None,
) -> Iterator[Call]:
    """Calls of all repositories, one session each."""
    if edit_format not in EDIT_FORMATS:
        raise SettingsError(f"edit_format: want one of {', '.join(EDIT_FORMATS)}, got {edit_format!r}")
    if max_commits is not None and max_commits < 1:
        raise SettingsError(f"max_commits: want 1 or more, got {max_commits}")
    for source in sources:
        with importing.guard():
            repo = _open(source)
            try:
                session = importing.new_session(Path(repo.working_dir or repo.git_dir).name.removesuffix(".git"))
                for sha, parent in _commits(repo, source, max_commits):
                    with importing.guard():
                        call = _turn(repo, source, sha, parent, session=session, edit_format=edit_format)
                        if call is not None:
                            yield call
            finally:
                repo.close()


def _open(source: Path) -> Repo:
    try:
        import git
    except ImportError as error:
        raise InputError(f"{source}: want the program git to read its history, got: {_one_line(error)}") from error
    try:
        return git.Repo(source)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
        got = "a file" if source.is_file() else "a folder without one" if source.is_dir() else "no such path"
        raise RecordError(source, 1, f"want a git repository, got {got}") from error


def _commits(repo: Repo, source: Path, max_commits: int | None) -> list[tuple[str, str | None]]:
    """(commit, its parent) in order, by git's own walk, which knows where a shallow clone ends."""
    import git

    limit = [] if max_commits is None else [f"--max-count={max_commits}"]
    try:
        listed = repo.git.rev_list("HEAD", "--no-merges", "--topo-order", "--reverse", "--parents", *limit, "--")
    except git.GitError as error:
        raise RecordError(source, "HEAD", f"want a commit history, got: {_one_line(error)}") from error
    return [(fields[0], fields[1] if len(fields) > 1 else None) for fields in map(str.split, listed.splitlines())]


def history(source: Path, *, max_commits: int | None = None) -> Iterator[tuple[str, list[FileEdit]]]:
    """(message, edits) of each commit that would be a turn, oldest first; raises RecordError, InputError."""
    repo = _open(source)
    try:
        for sha, parent in _commits(repo, source, max_commits):
            found = _commit(repo, source, sha, parent)
            if found is not None:
                yield found
    finally:
        repo.close()


def _commit(repo: Repo, source: Path, sha: str, parent: str | None) -> tuple[str, list[FileEdit]] | None:
    import git
    import gitdb.exc

    try:
        commit = repo.commit(sha)
        edits = _edits(commit, repo.commit(parent) if parent else None)
        message = commit.message if isinstance(commit.message, str) else commit.message.decode(errors="replace")
    except (git.GitError, gitdb.exc.ODBError, ValueError, OSError) as error:
        raise RecordError(source, sha[:12], f"want a readable commit, got: {_one_line(error)}") from error
    size = sum(len(edit.old or "") + len(edit.new or "") for edit in edits)
    if len(edits) > _MAX_FILES or size > _MAX_COMMIT_BYTES or not any(edit.new is not None for edit in edits):
        return None
    return message.encode(errors="replace").decode().strip(), edits


def _turn(repo: Repo, source: Path, sha: str, parent: str | None, *, session: str, edit_format: str) -> Call | None:
    found = _commit(repo, source, sha, parent)
    if found is None:
        return None
    request, edits = found
    return Call(
        session=session,
        messages=_prompt(edits, request, edit_format),
        output=edit_output([edit for edit in edits if edit.new is not None], edit_format),
        role="coder",
        scaffold=None if edit_format == "str-replace" else "aider",
        tools=(_STR_REPLACE_TOOL,) if edit_format == "str-replace" else (),
    )


def _edits(commit: Commit, parent: Commit | None) -> list[FileEdit]:
    """The commit's text files before and after, by path; a side is None where the file is absent."""
    import git

    diffs = parent.diff(commit, no_renames=True) if parent else commit.diff(git.NULL_TREE, no_renames=True)
    edits = []
    for diff in diffs:
        path = diff.b_path or diff.a_path or ""
        old_blob = None if diff.new_file or parent is None else diff.a_blob
        new_blob = None if diff.deleted_file else diff.b_blob
        sides = [_text(blob) for blob in (old_blob, new_blob)]
        readable = all(side is not None or blob is None for side, blob in zip(sides, (old_blob, new_blob), strict=True))
        if path.isprintable() and readable and sides[0] != sides[1]:
            edits.append(FileEdit(path=path, old=sides[0], new=sides[1]))
    return sorted(edits, key=lambda edit: edit.path)


def _text(blob: Blob | None) -> str | None:
    if blob is None or blob.mode not in _REGULAR_FILE_MODES or blob.size > _MAX_FILE_BYTES:
        return None
    data = blob.data_stream.read()
    try:
        return None if b"\0" in data else str(data, "utf-8")
    except UnicodeDecodeError:
        return None


def _prompt(edits: list[FileEdit], request: str, edit_format: str) -> tuple[Message, ...]:
    shown = [(edit.path, edit.old) for edit in edits if edit.old is not None]
    fence = choose_fence([old for _, old in shown])
    system = "Act as an expert software developer.\n" + _SYSTEM[edit_format]
    messages = [Message(role="system", content=system)]
    if shown:
        blocks = [f"\n{path}\n{fence}\n{old}{fence}\n" for path, old in shown]
        messages.append(Message(role="user", content=_FILES_HEADER + "".join(blocks)))
        messages.append(Message(role="assistant", content=_FILES_REPLY))
    return (*messages, Message(role="user", content=request))


def _one_line(error: Exception) -> str:
    return " ".join(str(getattr(error, "stderr", None) or error).split())[:200]
