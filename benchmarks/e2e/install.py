"""Programs of other projects, each in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HOME = Path("out/e2e")


def install(packages: Sequence[str], *, root: Path = HOME, python: str | None = "3.11") -> Path:
    """Folder with ``packages`` of PyPI for ``python``, or of npm where that is None; made if need be."""
    home = root.absolute() / packages[0].strip("@").replace("/", "-").replace("@", "-")
    done = home / "agspec-installed.json"
    if done.is_file() and json.loads(done.read_text()) == list(packages):
        return home
    if python is None:
        subprocess.run(["npm", "install", "--prefix", str(home), "--no-fund", "--no-audit", *packages], check=True)
    else:
        own = python == f"3.{sys.version_info[1]}"
        subprocess.run([sys.executable if own else _python(python), "-m", "venv", "--clear", str(home)], check=True)
        subprocess.run([str(home / "bin" / "pip"), "install", "-q", *packages], check=True)
    done.write_text(json.dumps(packages))
    return home


def _python(version: str) -> str:
    """A Python of that version, pyenv's where it has one that is not on the path."""
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    return str(kept[-1]) if kept else f"python{version}"
