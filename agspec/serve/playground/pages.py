"""The page's files: sources in ``web``, built with npm into the user's cache, once for each version of them."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import platformdirs

from agspec.errors import AgspecError, InputError

SOURCES = Path(__file__).with_name("web")
INSTALL = ("ci", "--no-audit", "--no-fund", "--loglevel=error")
BUILD = ("run", "build", "--silent")
TOLD = 800
"""Characters of a failed command's last words that an error repeats."""


def built(cache: Path | None = None) -> Path:
    """The folder to serve, made if need be. Raises InputError without npm, AgspecError where the build fails.

    A build that is broken off leaves nothing behind. ``cache``: by default the user's.
    """
    folder = (cache or Path(platformdirs.user_cache_dir("agspec"))) / "playground" / _version()
    if folder.is_dir():
        return folder
    npm = shutil.which("npm")
    if npm is None:
        raise InputError("the playground: want npm (Node.js 20 or later) on PATH to build the page once, found none")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        copy = shutil.copytree(SOURCES, Path(work) / "web", ignore=shutil.ignore_patterns("node_modules", "dist"))
        for arguments in (INSTALL, BUILD):
            _run(npm, arguments, copy)
        try:
            (copy / "dist").rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was first
                raise
    return folder


def _version() -> str:
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*")):
        if path.is_file() and not {"node_modules", "dist"} & set(path.relative_to(SOURCES).parts):
            digest.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _run(npm: str, arguments: tuple[str, ...], folder: Path) -> None:
    done = subprocess.run([npm, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        told = (done.stderr or done.stdout).strip()[-TOLD:]
        raise AgspecError(f"the playground: want npm {arguments[0]} to succeed, got {done.returncode}: {told}")
