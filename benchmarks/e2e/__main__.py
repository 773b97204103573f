"""Real agents in front of ``agspec serve``: ``python -m benchmarks.e2e [AGENT...] [--home DIR] [--json]``.

Each agent is installed apart from the project (PyPI or npm) and given a small task on the embedded model, whose answers
are scripted. Its requests must be linked to one session, its roles told, the file it opened be in the store, and its
work be done; what was drafted and accepted is printed by store. The result goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from agspec.copyedit import program as language
from agspec.copyedit.compile import Cost, compile_edit
from agspec.copyedit.machine import Machine
from agspec.copyedit.source import Source
from agspec.copyedit.token_machine import TokenMachine, Vocabulary
from agspec.replay.environment import environment
from agspec.serve.config import ServeConfig
from agspec.settings import Settings
from agspec.tokens import Tokens, as_tokens
from benchmarks.corpus import write_result
from benchmarks.e2e.agents import AGENTS, REPO, Agent, Where
from benchmarks.e2e.install import HOME, install
from benchmarks.e2e.server import TapedServer
from benchmarks.e2e.task import FILE, NAME, states, whole

MAX_MODEL_LEN = 32768
FLAGS = (
    "--max-model-len", str(MAX_MODEL_LEN), "--max-num-seqs", "4", "--enable-auto-tool-choice",
    "--tool-call-parser", "hermes",
)  # fmt: skip
MOST_DECODED = 0.1
"""Of the tokens of Aider's whole files, where programs copy them (issue 5)."""
KEYS = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")


def lay_out() -> None:
    """The working copy, one commit."""
    shutil.rmtree(REPO.parent, ignore_errors=True)
    REPO.mkdir(parents=True)
    (REPO / NAME).write_text(FILE)
    git = ["git", "-C", str(REPO), "-c", "user.name=e2e", "-c", "user.email=e2e@localhost"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "Start"]):
        subprocess.run([*git, *command], check=True)


def run(agent: Agent, home: Path, scratch: Path) -> dict[str, Any]:
    """One agent's session on a server of its own: what was told of it, and what is wrong with that."""
    lay_out()
    config = ServeConfig(workspace=REPO, copy_edits=agent.copies)
    with TapedServer.with_agspec(
        scratch / "server.log", settings=Settings(strict=True), config=config, flags=FLAGS
    ) as server:
        server.client.headers["authorization"] = "Bearer none"  # the agents' key, whose tenant is looked at
        server.script(map(partial(_program, server), range(len(agent.answers))) if agent.copies else agent.answers)
        done = agent.run(Where(home, REPO, f"{server.url}/v1", scratch))
        (scratch / "agent.log").write_text(done.stdout)
        taken, left = server.taken()
        sessions, stats, num_decoded = server.sessions(), server.stats(), server.num_decoded()
    largest = max((session["num_requests"] for session in sessions), default=0)
    row = {
        "agent": agent.name, "num_calls": taken, "num_sessions": len(sessions),
        "linked": round(largest / taken, 3) if taken else 0.0,
        "scaffolds": sorted({session["scaffold"] for session in sessions}),
        "roles": sorted(stats["by_role"]), "how": stats["links"],
        "workspace_bytes": stats["stores"].get("workspace", {}).get("memory_bytes", 0),
        "by_source": {name: {key: counts[key] for key in KEYS} for name, counts in stats["by_source"].items()},
        "num_decoded_tokens": num_decoded,
        "num_accepted_tokens": stats["num_accepted_tokens"], "num_draft_tokens": stats["num_draft_tokens"],
    }  # fmt: skip
    wrong = {
        "answers left or asked for in vain": left != 0,
        "the work is not done": (REPO / NAME).read_text() != states()[-1],
        "not one session": len(sessions) != 1,
        "another scaffold": row["scaffolds"] != [agent.scaffold],
        "other roles": not agent.roles <= {role for session in sessions for role in session["roles"]},
        "the file is not in the store": not row["workspace_bytes"],
        "errors": bool(stats["errors"] or stats["api_errors"]),
        "nothing accepted": not stats["num_accepted_tokens"],
    }
    row["wrong"] = [what for what, is_so in wrong.items() if is_so]
    return row


def _program(server: TapedServer, number: int) -> Tokens:
    """The answer after change ``number``, as a program that copies from the file before it."""
    vocabulary = Vocabulary(server.tokenizer)
    source = Source(states()[number].encode())
    cost = Cost(text=lambda text: float(len(vocabulary.encode(text))))
    program = compile_edit([source], whole(number).encode(), cost=cost)
    return as_tokens(TokenMachine(Machine([source], spans=False), vocabulary).tokens_of(language.show(program)))


def compare(rows: list[dict[str, Any]]) -> None:
    """Aider's whole files, by programs against token by token; what is wrong goes into the programs' row."""
    found = {row["agent"]: row for row in rows}
    plain, copied = found.get("aider whole"), found.get("aider whole+copy")
    if plain is not None and copied is not None:
        copied["decoded_share"] = round(copied["num_decoded_tokens"] / plain["num_decoded_tokens"], 4)
        if copied["decoded_share"] > MOST_DECODED:
            copied["wrong"].append(f"more than {MOST_DECODED:.0%} of the whole files' tokens decoded")


def main() -> None:
    """Install, run, print, keep; exit code 1 when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.e2e", description=__doc__)
    parser.add_argument("agents", nargs="*", help=f"of {', '.join(agent.name for agent in AGENTS)}")
    parser.add_argument("--home", type=Path, default=HOME, help="where the agents are installed")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    chosen = [agent for agent in AGENTS if not asked.agents or agent.name in asked.agents]
    rows = []
    for agent in chosen:
        home = install(agent.packages, root=asked.home, python=agent.python)
        with tempfile.TemporaryDirectory(prefix="agspec-e2e-") as folder:
            row = run(agent, home, Path(folder))
            if row["wrong"]:
                for name in ("agent.log", "server.log"):
                    print(f"--- {agent.name}: {name}\n{(Path(folder) / name).read_text()[-4000:]}", file=sys.stderr)
        rows.append(row)
        if not asked.json:
            show(row)
    compare(rows)
    result = {"kind": "e2e", "environment": environment(), "rows": rows}
    if len(chosen) == len(AGENTS):
        print(f"kept in {write_result('e2e', result)}", file=sys.stderr)
    if asked.json:
        print(json.dumps(result, indent=1))
    elif "decoded_share" in (last := next((row for row in rows if row["agent"] == "aider whole+copy"), {})):
        print(f"aider whole+copy decoded {last['decoded_share']:.1%} of the tokens of aider whole")
    if any(row["wrong"] for row in rows):
        raise SystemExit(1)


def show(row: dict[str, Any]) -> None:
    """One agent, in a few lines."""
    stores = ", ".join(
        f"{name} {counts['num_accepted_tokens']} of {counts['num_draft_tokens']}"
        for name, counts in row["by_source"].items()
    )
    told = f"scaffold {'+'.join(row['scaffolds'])}, roles {'+'.join(row['roles'])}"
    wrong = f"; WRONG: {', '.join(row['wrong'])}" if row["wrong"] else ""
    print(
        f"{row['agent']:16} {row['num_calls']} calls, {row['linked']:.0%} linked, {told};"
        f" accepted of drafted tokens: {stores}{wrong}",
        flush=True,
    )


if __name__ == "__main__":
    main()
