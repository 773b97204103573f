"""Who may import whom, and what ``import agspec`` costs."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOADED = """
import json, sys
before = set(sys.modules)
import agspec
names = {name.partition(".")[0] for name in set(sys.modules) - before} - {"agspec"}
print(json.dumps([sorted(names - set(sys.stdlib_module_names)), sorted(sys.modules)]))
"""


def python(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_rooms_keep_to_their_imports() -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_the_contracts_are_the_houses() -> None:
    """The rules themselves: nobody takes a layer or a forbidden module out unnoticed."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    order = [
        "agspec.cli",
        "agspec.serve",
        "agspec.engine",
        "agspec.replay",
        "agspec.build",
        "agspec.draft | agspec.copyedit | agspec.fim",
        "agspec.errors",
    ]
    assert [layer for layer in layers if layer in order] == order
    pure = next(contract for contract in contracts if "pure" in contract["name"])
    assert {"agspec.draft", "agspec.copyedit"} <= set(pure["source_modules"])
    assert {"vllm", "torch", "transformers", "os", "time", "random", "pathlib"} <= set(pure["forbidden_modules"])


def test_import_loads_no_package_but_our_own() -> None:
    third_party, modules = json.loads(python("-c", LOADED))
    assert third_party == []
    assert not {"vllm", "torch", "numba", "transformers", "numpy"} & set(modules)
    assert "agspec.draft.kernels" not in modules


def test_public_names_load_on_use_and_without_an_engine() -> None:
    code = "import agspec, sys; [getattr(agspec, name) for name in agspec.__all__]; print(sorted(sys.modules))"
    modules = python("-c", code)
    assert "'agspec.draft.kernels'" in modules
    for heavy in ("'vllm'", "'torch'", "'transformers'", "'fastapi'", "'arctic_inference'"):
        assert heavy not in modules


def test_unknown_public_name() -> None:
    import agspec

    with pytest.raises(AttributeError, match=r"^module 'agspec' has no attribute 'Nothing'; it has __version__, "):
        agspec.Nothing  # noqa: B018
