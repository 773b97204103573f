"""The ``vllm serve`` command line that has agspec in it."""

from __future__ import annotations

import importlib.util
import json
import secrets
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from agspec import embedded
from agspec.engine.config import SECRET, to_environment
from agspec.engine.copies.edits import SCHEDULER
from agspec.engine.launcher import EXTENSION, PROPOSER
from agspec.errors import InputError, MissingExtraError
from agspec.serve.config import ALIAS, ServeConfig
from agspec.settings import Settings

PLUGINS = "VLLM_PLUGINS"
SHUTDOWN_S = 10
"""Seconds that streams have after SIGTERM; vLLM's own default, 0, was seen to hang with a stream open (0.32.0)."""
NAMES = "--served-model-name"
TAKEN = ("--speculative-config", "-sc", "--worker-extension-cls")
EMBEDDED_FLAGS = {
    NAMES: "embedded",
    "--max-model-len": str(embedded.CONTEXT),
    "--dtype": "bfloat16",
    "--enforce-eager": None,
}
EMBEDDED_ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "2"}


@dataclass(frozen=True)
class Command:
    """What to run: arguments, the program first, and variables beside those there are."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]

    def __str__(self) -> str:
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*variables, shlex.join(self.arguments)])


def command(
    model: str, flags: Sequence[str], *, settings: Settings, config: ServeConfig, environment: Mapping[str, str]
) -> Command:
    """The command that serves ``model`` with vLLM's ``flags``; InputError for a flag that cannot go with drafts."""
    if importlib.util.find_spec("vllm") is None:
        raise MissingExtraError("vllm", "vllm")
    given = dict(_flags(flags))
    _check(given)
    speculation = {"method": "custom_class", "model": PROPOSER, "num_speculative_tokens": settings.max_draft}
    ours: dict[str, str | None] = {
        "--speculative-config": json.dumps(speculation, separators=(",", ":")),
        "--worker-extension-cls": EXTENSION,
        "--enable-prefix-caching": None,
        **({"--scheduler-cls": SCHEDULER} if config.copy_edits else {}),
        "--shutdown-timeout": str(SHUTDOWN_S),
        **(EMBEDDED_FLAGS if model == "embedded" else {}),
    }
    if config.copy_edits:
        flags = _with_alias(flags, model)
        given = dict(_flags(flags))
    added = [
        part
        for name, value in ours.items()
        if name not in given and f"--no-{name[2:]}" not in given
        for part in ([name] if value is None else [name, value])
    ]
    plugins = [name for name in environment.get(PLUGINS, "").split(",") if name]
    variables = {
        **(EMBEDDED_ENVIRONMENT if model == "embedded" else {}),
        PLUGINS: ",".join([*plugins, *(() if "agspec" in plugins else ("agspec",))]),
        SECRET: environment.get(SECRET) or secrets.token_hex(16),
        **to_environment(settings),
        **config.to_environment(),
    }
    return Command((*_program(), "serve", embedded.resolve(model), *flags, *added), variables)


def _with_alias(flags: Sequence[str], model: str) -> list[str]:
    """``flags`` with a served name more: the first one, or ``model``, and ALIAS."""
    found = list(flags)
    for at, flag in enumerate(found):
        name, equals, value = flag.partition("=")
        if name.replace("_", "-") == NAMES:
            names = [value] if equals else found[at + 1 : at + 2]
            found[at : at + 1 + (not equals)] = [NAMES, *names, *(one + ALIAS for one in names)]
            return found
    return [*found, NAMES, model, model + ALIAS]


def _program() -> tuple[str, ...]:
    """The ``vllm`` command beside this Python, or our launcher where the wheel's does not start."""
    beside = Path(sys.executable).with_name("vllm")
    try:
        metadata.version("vllm")
    except metadata.PackageNotFoundError:
        return sys.executable, "-m", "agspec.engine.vllm_cpu"
    return (str(beside) if beside.exists() else "vllm",)


def _flags(flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each flag, dashes for underscores, with its value where one follows."""
    for i, flag in enumerate(flags):
        if flag.startswith("-") and not flag.lstrip("-")[:1].isdigit():
            name, equals, value = flag.partition("=")
            following = flags[i + 1] if i + 1 < len(flags) and not flags[i + 1].startswith("-") else ""
            yield (name.replace("_", "-") if name.startswith("--") else name), value if equals else following


def _check(given: Mapping[str, str]) -> None:
    for name in given:
        if name.partition(".")[0] in TAKEN:
            raise InputError(f"{name}: agspec sets this itself, want it left out")
    if "--async-scheduling" in given:
        raise InputError(
            "--async-scheduling: vLLM 0.32 drafts with a custom proposer only without it, want it left out"
        )
    if given.get("--distributed-executor-backend") == "external_launcher":
        raise InputError("--distributed-executor-backend: want mp, ray or uni with agspec, got external_launcher")
    for name in ("--pipeline-parallel-size", "-pp"):
        if given.get(name, "1") != "1":
            raise InputError(f"{name}: want 1 with agspec, got {given[name]}")
