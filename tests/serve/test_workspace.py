"""Files of a working copy: found by their names, read only where that is safe."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from git import Repo

from agspec.errors import InputError
from agspec.serve.workspace import LARGEST, Workspace

FILES = {
    "a.py": "x = 1\n", "pkg/a.py": "y = 2\n", "pkg/data.py": "z = 3\n", "dir with space/b.txt": "b\n",
    "Makefile": "all:\n",    ".env": "TOKEN=1\n", "deploy/server.pem": "-----BEGIN", "large.txt": "x" * (LARGEST + 1),
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "outside.txt").write_text("secret of another")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    (root / "inside.txt").symlink_to(root / "a.py")
    (root / "config.txt").symlink_to(".env")
    (root / "remote.txt").symlink_to(".git/config")
    (root / "hidden.txt").symlink_to("ignored.txt")
    (root / "binary.bin").write_bytes(b"\xff\x00")
    (root / "ignored.txt").write_text("ignored")
    (root / ".gitignore").write_text("ignored.txt\n")
    repo = Repo.init(root)
    repo.git.add("--all", "--force", "--", *FILES, "link.txt", "inside.txt", "binary.bin", "config.txt", "remote.txt",
                 "hidden.txt")  # fmt: skip
    return root


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("see a.py.", ["a.py"]),
        ("see pkg/a.py:12 and `a.py`", ["pkg/a.py", "a.py"]),
        ("cat /work/pkg/data.py | head", ["pkg/data.py"]),
        ("data.py, a.pyc, a.py2, xa.py, a.py.orig", []),
        ("a.py\na.py", ["a.py"]),
        ("open 'dir with space/b.txt' and run the Makefile!", ["dir with space/b.txt", "Makefile"]),
        ("ignored.txt is not tracked", []),
        ("", []),
    ],
)
def test_files_are_named(text: str, paths: list[str], root: Path) -> None:
    assert list(Workspace(root).named(text)) == paths


def test_only_what_is_safe_is_read(root: Path) -> None:
    workspace = Workspace(root)
    assert workspace.read("a.py") == workspace.read("inside.txt") == "x = 1\n"
    for name in (
        ".env",
        "deploy/server.pem",
        "large.txt",
        "link.txt",
        "binary.bin",
        "pkg",
        "gone.py",
        "../outside.txt",
    ):
        assert workspace.read(name) is None, name
    (root / "loop.txt").symlink_to("loop.txt")
    assert workspace.read("loop.txt") is None


def test_the_index_is_followed(root: Path) -> None:
    workspace = Workspace(root)
    assert list(workspace.named("new.py")) == []
    (root / "new.py").write_text("n = 1\n")
    Repo(root).git.add("new.py")
    os.utime(root / ".git" / "index", (1, 1))
    assert list(workspace.named("new.py")) == ["new.py"]
    (root / "a.py").write_text("x = 2\n")
    assert workspace.read("a.py") == "x = 2\n"


def test_what_is_no_working_copy(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "gone"):
        with pytest.raises(InputError, match="want the working copy of a git repository, got none"):
            Workspace(place)
    Repo.init(tmp_path / "bare", bare=True)
    with pytest.raises(InputError, match="got a bare one"):
        Workspace(tmp_path / "bare")
