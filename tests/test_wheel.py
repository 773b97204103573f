"""A wheel carries scaffolds, shipped sessions and cost profiles, and works outside the checkout."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from agspec.costfile import list_costs

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of a virtual environment that sees this one's packages, with agspec from a wheel."""
    work = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(work), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = work.glob("*.whl")
    venv.create(work / "env", with_pip=True)
    python = work / "env" / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    (site,) = (work / "env" / "lib").glob("python*/site-packages")
    ours = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "packages.pth").write_text(f"{ours}\n")
    return python


def run(python: Path, code: str, cwd: Path) -> str:
    done = subprocess.run([str(python), "-I", "-c", code], capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_F1_wheel_works_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    code = (
        "import agspec; from agspec.scaffold import load_profiles; from agspec.resources import data_dir\n"
        "print(agspec.__file__); print(data_dir('replays'))\n"
        "trace = agspec.read_trace(data_dir('replays') / 'aider-own.jsonl.gz')\n"
        "print(load_profiles().get('aider').name, len(trace.calls))\n"
        "from agspec.costfile import list_costs, read_cost\n"
        "print(len(list_costs()), read_cost('h100-7b').batches[0])"
    )
    where, replays, told, costs = run(installed, code, tmp_path).splitlines()
    assert Path(where).is_relative_to(installed.parents[1])
    assert Path(replays).is_relative_to(installed.parents[1])
    assert told == "aider 16"
    assert costs == f"{len(list_costs())} 1"


def test_wheel_brings_the_command(installed: Path) -> None:
    done = subprocess.run([str(installed.parent / "agspec"), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("agspec, version ")
