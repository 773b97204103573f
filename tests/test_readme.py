"""README is true: its commands run, and its figures say where they come from."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agspec.costfile import read_cost_file

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
WITHOUT_ENGINE = (
    r"agspec (import|calibrate|inspect|simulate|corpus|copy|fim|scaffold|serve .*--print-command|profile --list)"
)
LIGHT = [line for line in COMMANDS if re.match(WITHOUT_ENGINE, line)]
ON_SERVER = [line for line in COMMANDS if re.match(r"agspec (doctor|top)", line)]
"""Run by tests/engine/test_serve.py."""
ON_ENGINE = [line for line in COMMANDS if re.match(r"agspec (bench|verify|profile --model)", line)]


def run(line: str, cwd: Path) -> str:
    words = shlex.split(line)
    command = [sys.executable, "-m", "agspec.cli", *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_command_is_run_somewhere() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for line in COMMANDS:
        words = line.split()
        if words[0] == "make":
            assert f"\n{words[1]}:" in makefile
        elif words[0] == "pip":
            dry = [sys.executable, "-m", "pip", "install", "--dry-run", "-q", "--no-deps", "--no-build-isolation"]
            done = subprocess.run([*dry, *shlex.split(line)[2:]], capture_output=True, text=True, cwd=ROOT, check=False)
            assert done.returncode == 0, done.stderr
            assert "does not provide the extra" not in done.stderr
        else:
            assert line in LIGHT or line in ON_ENGINE or line in ON_SERVER


def test_light_commands_run_in_order(tmp_path: Path) -> None:
    answer = {"role": "assistant", "content": "I look.", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}]}  # fmt: skip
    messages = [{"role": "system", "content": "You are a helpful assistant that can interact with a computer."},
                {"role": "user", "content": "Please solve this issue: none"}, answer]  # fmt: skip
    trajectory = {"info": {"exit_status": "Submitted"}, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}
    (tmp_path / "trajectories").mkdir()
    (tmp_path / "trajectories" / "one.traj.json").write_text(json.dumps(trajectory))
    (tmp_path / "before.py").write_text("x = 1\n" * 30)
    (tmp_path / "after.py").write_text("x = 1\n" * 29 + "x = 2\n")
    assert len(LIGHT) >= 4
    for line in LIGHT:
        run(line, tmp_path)
    assert (tmp_path / "again.py").read_bytes() == (tmp_path / "after.py").read_bytes()
    for page in ("report.html", "caps.html"):
        assert (tmp_path / page).stat().st_size > 5000


@pytest.mark.engine
@pytest.mark.parametrize("line", ON_ENGINE, ids=lambda line: line.split()[1])
def test_engine_commands_run(line: str, tmp_path: Path) -> None:
    told = run(line, tmp_path)
    if "bench" in line:
        assert re.search(r"agspec\s.*\d", told)
    elif "profile" in line:
        assert read_cost_file(tmp_path / "cost.json").batches == (1, 2)
    else:
        assert "identical: 5 prompts in float32" in told


@pytest.mark.engine
def test_python_example_runs(tmp_path: Path) -> None:
    (code,) = [text for kind, text in BLOCKS if kind == "python"]
    (tmp_path / "example.py").write_text(code)
    env = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    done = subprocess.run(
        [sys.executable, "example.py"], capture_output=True, text=True, cwd=tmp_path, env=env, check=False
    )
    assert re.search(r"^\d+ drafted tokens accepted$", done.stdout, re.MULTILINE), done.stderr[-2000:]
