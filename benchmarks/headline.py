"""Three public recorded sessions on the real engine at batch 1.

``python -m benchmarks.headline DIR`` where DIR holds the ``*.traj.json[.gz]`` files of SWE-agent/mini-swe-agent
@e5e0fbca (pull request 816, MIT).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

SESSIONS = ("django__django-11099", "django__django-12915", "pydicom__pydicom-1413")
"""Chosen before measuring: three tasks, their first calls fit the embedded model's 8,192 tokens."""
BENCH = (
    "--model", "embedded", "--methods", "none,suffix,agspec", "--batch", "1",
    "--max-calls", "6", "--max-tokens", "160", "--cost-ratio", "0.07",
)  # fmt: skip


def main() -> None:
    """Import, then bench; what the commands print goes to stdout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", default="1")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = [path for path in sorted(options.folder.rglob("*.traj.json*")) if path.name.startswith(SESSIONS)]
    if len(found) != len(SESSIONS):
        parser.error(f"want the sessions {', '.join(SESSIONS)} below {options.folder}, found {len(found)} of them")
    agspec = [sys.executable, "-m", "agspec.cli"]
    with tempfile.TemporaryDirectory() as work:
        trace = Path(work) / "three-mini-swe-agent-sessions.jsonl.gz"
        subprocess.run([*agspec, "import", "mini-swe-agent", *map(str, found), "-o", str(trace)], check=True)
        extra = ["--json"] if options.json else []
        subprocess.run([*agspec, "bench", str(trace), *BENCH, "--repeats", options.repeats, *extra], check=True)


if __name__ == "__main__":
    main()
