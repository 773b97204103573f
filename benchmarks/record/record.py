"""Record the small sessions of replays/ with the real clients against a scripted server.

    .venv/bin/python -m benchmarks.record.record --aider VENV --mini VENV [NAME...]

VENV are throw-away environments: ``python3.11 -m venv V && V/bin/pip install aider-chat==0.86.2`` (and
``mini-swe-agent==2.4.6``). For each script in sessions/ the state before its commit is laid out as a
repository in /tmp/agspec-replay, the client works there and its commands really run. Then the record is
imported, the clients' own prompt texts are cut, and replays/ and its MANIFEST.toml are written anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from agspec.replay.importers import import_sources
from agspec.replay.trace import Call, Trace, write_trace
from benchmarks.record.cut import cut_call
from benchmarks.record.script import Script, check_outcome, lay_out, read_script
from benchmarks.record.server import MODEL, ScriptedServer

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = Path(__file__).parent / "sessions"
WORK = Path("/tmp/agspec-replay")
DATE = "2026-11-30"
LIMIT_S = 300
VERSIONS = {"aider": "aider-chat 0.86.2", "mini-swe-agent": "mini-swe-agent 2.4.6"}
CUT = {
    "aider": "system prompt, example chat, rules reminder and commit prompt down to their marker lines",
    "mini-swe-agent": "instructions around the task down to their marker lines",
}
MANIFEST_HEAD = """\
# Recorded sessions that ship with agspec, all of our own making. Written by benchmarks/record/record.py.
# Real clients ran against a scripted server. Its answers were written beforehand, as a model would give them, and
# make a commit's edit, starting from its parent or from the commit with that edit undone; the commands in them
# really ran. They show that agspec works, and are no measure of how well.
"""


@click.command()
@click.option("--aider", "aider_venv", required=True, type=click.Path(path_type=Path), help="venv of aider-chat")
@click.option("--mini", "mini_venv", required=True, type=click.Path(path_type=Path), help="venv of mini-swe-agent")
@click.option("--output", default=ROOT / "replays", type=click.Path(path_type=Path), help="folder to write to")
@click.option("--keep", type=click.Path(path_type=Path), help="folder for the uncut records (not to be shipped)")
@click.argument("names", nargs=-1)
def main(aider_venv: Path, mini_venv: Path, output: Path, keep: Path | None, names: Sequence[str]) -> None:
    """Record all sessions; or only those NAMEd, to try a script, into another folder and without a manifest."""
    if names and output.resolve() == ROOT / "replays":
        raise click.UsageError("want --output with names: replays/ and its manifest are recorded as a whole")
    venvs = {"aider": aider_venv.absolute(), "mini-swe-agent": mini_venv.absolute()}
    scripts = {path.stem: read_script(path) for path in sorted(SESSIONS.glob("*.toml"))}
    calls: dict[str, list[Call]] = {client: [] for client in venvs}
    for name, script in scripts.items():
        if names and name not in names:
            continue
        calls[script.client] += record(name, script, venvs[script.client], keep)
        click.echo(f"{name}: {len(calls[script.client])} calls of {script.client} so far", err=True)
    written = []
    for client, found in calls.items():
        if found:
            output.mkdir(parents=True, exist_ok=True)
            path = output / f"{client}-own.jsonl.gz"
            mine = [(name, script) for name, script in scripts.items() if script.client == client]
            sources = tuple(f"benchmarks/record/sessions/{name}.toml" for name, _ in mine if not names or name in names)
            write_trace(Trace(name=f"{client}-own", kind="openai", calls=tuple(found), sources=sources), path)
            written.append(_entry(path, client, [script for _, script in mine], found))
    if not names:
        (output / "MANIFEST.toml").write_text(MANIFEST_HEAD + "".join(written), "utf-8")


def record(name: str, script: Script, venv: Path, keep: Path | None) -> list[Call]:
    """One session: lay out, run the client, check what it made, import, cut."""
    shutil.rmtree(WORK, ignore_errors=True)
    repo = WORK / "repo"
    lay_out(script, ROOT, repo, environment={**os.environ, **_identity()})
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / f"{name}.jsonl"
        with ScriptedServer(script.answers(), lines, name) as server:
            run = _aider if script.client == "aider" else _mini
            done = run(script, venv, server.base_url)
        if done.returncode or server.num_answered != len(script.answers()) or server.unanswered:
            wanted = f"{name}: want {len(script.answers())} answers taken, got {server.num_answered}"
            raise SystemExit(f"{done.stdout[-6000:]}\n{wanted} and {server.unanswered} more asked for")
        check_outcome(script, ROOT, repo)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(lines, keep)
            (keep / f"{name}.log").write_text(done.stdout, "utf-8")
        trace, _ = import_sources("openai", [lines], name=name)
    shutil.rmtree(WORK)
    return [cut_call(call) for call in trace.calls]


def _aider(script: Script, venv: Path, base_url: str) -> subprocess.CompletedProcess[str]:
    """Aider as typed at: a message a line. No repo map, no summary of the history (both would be more calls)."""
    commits = any(turn.commit for turn in script.turns)
    command = [
        str(venv / "bin" / "aider"), "--model", f"openai/{MODEL}", "--edit-format", "diff", "--yes-always",
        "--auto-commits" if commits else "--no-auto-commits", "--no-fancy-input", "--no-pretty", "--map-tokens", "0",
        "--max-chat-history-tokens", "20000", "--no-check-update", "--no-show-release-notes", "--analytics-disable",
        "--no-show-model-warnings", "--no-detect-urls", "--no-gitignore", "--no-suggest-shell-commands",
        *script.files,
    ]  # fmt: skip
    typed = "".join(turn.say.replace("\n", " ").strip() + "\n" for turn in script.turns)
    settings = {"OPENAI_API_BASE": base_url, "OPENAI_API_KEY": "none"}
    return _run(command, settings, typed=typed)


def _mini(script: Script, venv: Path, base_url: str) -> subprocess.CompletedProcess[str]:
    """mini-swe-agent in the local shell, each command run without asking."""
    command = [
        str(venv / "bin" / "mini"), "-m", f"openai/{MODEL}", "-t", script.task.strip(), "-y", "--exit-immediately",
        "-c", script.config, "-c", f"model.model_kwargs.api_base={base_url}",
        "-c", "model.cost_tracking=ignore_errors", "-c", "environment.environment_class=local",
        "-c", f"environment.cwd={WORK / 'repo'}", "-o", str(WORK / "last.traj.json"),
    ]  # fmt: skip
    settings = {
        "OPENAI_API_KEY": "none",
        "MSWEA_CONFIGURED": "true",
        "MSWEA_SILENT_STARTUP": "1",
        "MSWEA_GLOBAL_CONFIG_DIR": str(WORK / "home"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return _run(command, settings)


def _run(command: list[str], settings: dict[str, str], *, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run a client in the laid-out repository, in an environment that says nothing of this machine."""
    (WORK / "home").mkdir()
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    environment = {
        "PATH": path,
        "HOME": str(WORK / "home"),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "COLUMNS": "120",
        "PYTHONHASHSEED": "0",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        **_identity(),
        **settings,
    }
    return subprocess.run(
        command, cwd=WORK / "repo", env=environment, input=typed, text=True, timeout=LIMIT_S,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip


def _identity() -> dict[str, str]:
    """Git's author and time, the same at each recording, so that commit hashes are too."""
    who = {"NAME": "agspec", "EMAIL": "agspec@example.org", "DATE": f"{DATE}T12:00:00Z"}
    return {f"GIT_{kind}_{key}": value for kind in ("AUTHOR", "COMMITTER") for key, value in who.items()}


def _entry(path: Path, client: str, scripts: list[Script], calls: list[Call]) -> str:
    """The file's table in the manifest."""
    commits = ", ".join(sorted({script.commit for script in scripts}))
    values: dict[str, Any] = {
        "file": path.name,
        "title": "; ".join(script.title for script in scripts),
        "origin": f"this project's own commits ({commits}), answered by a scripted server",
        "client": VERSIONS[client],
        "licence": "Apache-2.0",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "sessions": len({call.session for call in calls}),
        "calls": len(calls),
        "date": DATE,
        "cut": CUT[client],
    }
    lines = [f"{key} = {value if isinstance(value, int) else _quoted(value)}" for key, value in values.items()]
    return "\n[[replay]]\n" + "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


if __name__ == "__main__":
    main()
