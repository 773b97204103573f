"""The agent's working copy: which of its files a message names, and their real text.

What an agent was shown is often not the file: numbers, lost tabs, truncation. Where the server can see the working copy
(``--workspace DIR``, a git repository) the file itself is read. Only files that git tracks, never through a link that
leads outside, never secrets, never large ones.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ahocorasick
from git import InvalidGitRepositoryError, NoSuchPathError, Repo

from agspec.errors import InputError

LARGEST = 256 << 10
"""Bytes of a file that is read."""
SECRET = (".env", ".env.*", "*.pem", "*.key", "id_rsa*", "id_ed25519*", "credentials*", "*.p12", ".netrc", ".npmrc")
"""File names that are never read."""
NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
"""Characters that go on a file name: what is named must end before and begin after one."""


class Workspace:
    """A git repository's tracked files. InputError where ``root`` is no working copy."""

    def __init__(self, root: Path) -> None:
        try:
            self._repo = Repo(root)
        except (InvalidGitRepositoryError, NoSuchPathError) as error:
            raise InputError(f"{root}: want the working copy of a git repository, got none") from error
        if self._repo.working_tree_dir is None:
            raise InputError(f"{root}: want the working copy of a git repository, got a bare one")
        self.root = Path(self._repo.working_tree_dir).resolve()
        self._stamp: float | None = None
        self._automaton: Any = None

    def named(self, text: str) -> Iterator[str]:
        """Tracked paths that ``text`` names, each once, longest at each place; relative to the root."""
        automaton = self._paths()
        seen: dict[str, None] = {}
        ends: dict[int, str] = {}
        for last, path in automaton.iter(text) if automaton is not None else ():
            start = last + 1 - len(path)
            before, after = text[start - 1 : start], text[last + 1 : last + 2]
            if before in NAME or after in NAME or (after == "." and text[last + 2 : last + 3] in NAME):
                continue
            if len(path) > len(ends.get(last, "")):
                ends[last] = path
        for path in ends.values():
            if path not in seen:
                seen[path] = None
                yield path

    def read(self, path: str) -> str | None:
        """The text of a tracked file; None where it may not or cannot be read as text."""
        place = self.root / path
        if any(fnmatch.fnmatch(place.name.lower(), pattern) for pattern in SECRET):
            return None
        try:
            real = place.resolve(strict=True)
            if not real.is_relative_to(self.root) or not real.is_file() or real.stat().st_size > LARGEST:
                return None
            return real.read_bytes().decode()
        except (OSError, UnicodeDecodeError, RuntimeError):
            return None

    def _paths(self) -> Any:
        """The automaton over tracked paths, made anew when the index has changed."""
        try:
            stamp = Path(self._repo.index.path).stat().st_mtime
        except OSError:
            return None
        if stamp != self._stamp:
            automaton = ahocorasick.Automaton()
            for path in self._repo.git.ls_files("-z").split("\0"):
                if path:
                    automaton.add_word(path, path)
            automaton.make_automaton()
            self._automaton, self._stamp = (automaton if len(automaton) else None), stamp
        return self._automaton
