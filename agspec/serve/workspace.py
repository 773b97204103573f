"""The agent's working copy: which of its files a message names, and their real text.

What an agent was shown is often not the file: numbers, lost tabs, truncation. Where the server can see the working copy
(``--workspace DIR``, a git repository) the file itself is read. Only files that git tracks, never through a link that
leads outside, never secrets, never large ones.
"""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ahocorasick
from git import GitCommandError, InvalidGitRepositoryError, NoSuchPathError, Repo

from agspec.errors import InputError

log = logging.getLogger("agspec")

LARGEST = 256 << 10
"""Bytes of a file that is read."""
SECRET = (
    ".env", ".env.*", ".envrc", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "id_rsa*",
    "id_dsa*", "id_ecdsa*", "id_ed25519*", "credentials*", ".git-credentials", ".netrc", ".npmrc", ".pypirc",
    ".htpasswd",
)  # fmt: skip
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
        self._failed = False
        self._stamp: float | None = None
        self._tracked: frozenset[str] = frozenset()
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
        self._paths()
        try:
            real = (self.root / path).resolve(strict=True)
            if not real.is_relative_to(self.root) or real.relative_to(self.root).as_posix() not in self._tracked:
                return None
            secret = any(fnmatch.fnmatch(real.name.lower(), pattern) for pattern in SECRET)
            if secret or not real.is_file() or real.stat().st_size > LARGEST:
                return None
            return real.read_bytes().decode()
        except (OSError, UnicodeDecodeError, RuntimeError):
            return None

    def _paths(self) -> Any:
        """The automaton over tracked paths, made anew when the index has changed."""
        try:
            stamp = Path(self._repo.index.path).stat().st_mtime
            if stamp == self._stamp:
                return self._automaton
            tracked = frozenset(path for path in self._repo.git.ls_files("-z").split("\0") if path)
        except (OSError, GitCommandError) as error:
            if not self._failed:
                log.warning("agspec: no files are read from %s: %s", self.root, error)
            self._failed = True
            return None
        automaton = ahocorasick.Automaton()
        for path in tracked:
            automaton.add_word(path, path)
        automaton.make_automaton()
        self._automaton, self._tracked, self._stamp = (automaton if tracked else None), tracked, stamp
        return self._automaton
