"""The agents: what they are installed from, what the model answers them, and how they are run."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.e2e.task import CHANGES, NAME, call, diff, udiff, whole

LIMIT_S = 900
WANTED = [wanted for wanted, _, _ in CHANGES]


@dataclass(frozen=True)
class Where:
    """``home``: the agent's installation; ``repo``: its working copy; ``url``: the server, with /v1; ``scratch``."""

    home: Path
    repo: Path
    url: str
    scratch: Path


@dataclass(frozen=True)
class Agent:
    """``scaffold``: profile that has to be recognised; ``roles`` that have to be told. ``answers``: the model's.

    ``packages``: of PyPI, for ``python``, or of npm where that is None. ``copies``: it asks the model NAME+copy, and
    each answer is written as a program that copies from the file as it is then.
    """

    name: str
    scaffold: str
    roles: frozenset[str]
    packages: tuple[str, ...]
    answers: tuple[str, ...]
    run: Callable[[Where], subprocess.CompletedProcess[str]]
    python: str | None = "3.11"
    copies: bool = False


def _run(
    line: Sequence[object], where: Where, *, typed: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run an agent in its working copy, in an environment of its own."""
    home = where.scratch / "home"
    home.mkdir(exist_ok=True)
    path = os.pathsep.join([str(where.home / "bin"), str(where.home / "node_modules/.bin"), os.environ["PATH"]])
    environment = {
        "HOME": str(home), "PATH": path, "OPENAI_API_KEY": "none", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }  # fmt: skip
    return subprocess.run(
        [str(part) for part in line], cwd=where.repo, env=environment, input=typed, text=True, timeout=LIMIT_S,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip


def _aider(*more: str, model: str = "embedded") -> Callable[[Where], subprocess.CompletedProcess[str]]:
    def run(where: Where) -> subprocess.CompletedProcess[str]:
        line = [
            "aider", "--model", f"openai/{model}", "--yes-always", "--no-fancy-input", "--no-pretty", "--map-tokens",
            "0", "--max-chat-history-tokens", "20000",
            "--no-check-update", "--no-show-release-notes", "--analytics-disable", "--no-show-model-warnings",
            "--no-detect-urls", "--no-gitignore", "--no-suggest-shell-commands", *more, NAME,
        ]  # fmt: skip
        return _run(line, where, typed="".join(f"{wanted}\n" for wanted in WANTED), OPENAI_API_BASE=where.url)

    return run


def _mini(where: Where) -> subprocess.CompletedProcess[str]:
    line = [
        "mini", "-m", "openai/embedded", "-t", " ".join(WANTED), "-y", "--exit-immediately",
        "-c", "mini.yaml", "-c", f"model.model_kwargs.api_base={where.url}", "-c", "model.cost_tracking=ignore_errors",
        "-c", "environment.environment_class=local", "-c", f"environment.cwd={where.repo}",
        "-o", where.scratch / "trajectory.json",
    ]  # fmt: skip
    quiet = {"MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1"}
    return _run(line, where, **quiet, MSWEA_GLOBAL_CONFIG_DIR=str(where.scratch / "home"))


OPENHANDS = """
import sys
from pydantic import SecretStr
from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.tools.file_editor import FileEditorTool
from openhands.tools.terminal import TerminalTool

llm = LLM(model="openai/embedded", base_url=sys.argv[1], api_key=SecretStr("none"), usage_id="agent", num_retries=0)
agent = Agent(llm=llm, tools=[Tool(name=TerminalTool.name), Tool(name=FileEditorTool.name)])
conversation = Conversation(agent=agent, workspace=sys.argv[2])
conversation.send_message(sys.argv[3])
conversation.run()
"""


def _openhands(where: Where) -> subprocess.CompletedProcess[str]:
    script = where.scratch / "run.py"
    script.write_text(OPENHANDS)
    return _run(["python", script, where.url, where.repo, " ".join(WANTED)], where)


CONTINUE = """\
name: e2e
version: 0.0.1
schema: v1
models:
  - name: embedded
    provider: openai
    model: embedded
    apiBase: {url}
    apiKey: none
    roles: [chat, edit]
    capabilities: [tool_use]
    defaultCompletionOptions: {{contextLength: 32000, maxTokens: 2000}}
"""


def _continue(where: Where) -> subprocess.CompletedProcess[str]:
    config = where.scratch / "continue.yaml"
    config.write_text(CONTINUE.format(url=where.url))
    line = ["cn", "-p", "--auto", "--config", config, " ".join(WANTED)]
    return _run(line, where, CONTINUE_TELEMETRY_ENABLED="0", CI="1")


def _replaced(path: str) -> tuple[str, ...]:
    """The two changes, by OpenHands' editor."""
    return tuple(
        call("file_editor", command="str_replace", path=path, old_str=old, new_str=new, summary="change")
        for _, old, new in CHANGES
    )


REPO = Path("/tmp/agspec-e2e/repo")
"""Where each agent finds its working copy: paths stand in what the model says."""
PATH = f"{REPO}/{NAME}"
PYTHON = shlex.quote(
    "import sys; path, old, new = sys.argv[1:]; text = open(path).read(); "
    "assert text.count(old) == 1; open(path, 'w').write(text.replace(old, new))"
)
SHELL = tuple(
    call("bash", command=f"python3 -c {PYTHON} {NAME} {shlex.quote(old)} {shlex.quote(new)}") for _, old, new in CHANGES
)
AIDER = ("aider-chat==0.86.2",)
AGENTS = (
    Agent("aider whole", "aider", frozenset({"coder"}), AIDER, (whole(0), whole(1)),
          _aider("--edit-format", "whole", "--no-auto-commits")),
    Agent("aider whole+copy", "aider", frozenset({"coder"}), AIDER, (whole(0), whole(1)),
          _aider("--edit-format", "whole", "--no-auto-commits", model="embedded+copy"), copies=True),
    Agent("aider diff", "aider", frozenset({"coder", "committer"}), AIDER,
          (diff(0), "fix: refuse orders of more than is there", diff(1), "feat: the report says what all is worth"),
          _aider("--edit-format", "diff")),
    Agent("aider udiff", "aider", frozenset({"coder"}), AIDER, (udiff(0), udiff(1)),
          _aider("--edit-format", "udiff", "--no-auto-commits")),
    Agent("aider architect", "aider", frozenset({"architect", "editor"}), AIDER,
          (f"In {NAME}, order has to look at the stock before it takes from it:\n\n{CHANGES[0][2]}", diff(0),
           f"In {NAME}, report needs one more line before it joins them:\n\n{CHANGES[1][2]}", diff(1)),
          _aider("--architect", "--editor-edit-format", "editor-diff", "--no-auto-commits")),
    Agent("mini-swe-agent", "mini-swe-agent", frozenset({"coder"}), ("mini-swe-agent==2.4.6",),
          (call("bash", command=f"cat {NAME}"), *SHELL, call("bash", command=f"git diff && cat {NAME}"),
           call("bash", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")), _mini),
    Agent("openhands sdk", "openhands", frozenset({"coder"}), ("openhands-sdk==1.58.2", "openhands-tools==1.58.2"),
          (call("file_editor", command="view", path=PATH, summary="look"), *_replaced(PATH),
           call("terminal", command=f"cat {NAME}", summary="look"),
           call("finish", message="Both changes are made.", summary="done")), _openhands, python="3.12"),
    Agent("continue cli", "generic", frozenset({"coder"}), ("@continuedev/cli",),
          (call("Read", filepath=PATH),
           *(call("Edit", file_path=PATH, old_string=old, new_string=new) for _, old, new in CHANGES),
           "Both changes are made."), _continue, python=None),
)  # fmt: skip
