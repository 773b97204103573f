"""``agspec serve``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from agspec.commands import options


@click.command("serve", context_settings={"ignore_unknown_options": True})
@click.argument("model")
@click.argument("vllm_flags", nargs=-1, type=click.UNPROCESSED, metavar="[VLLM FLAGS]...")
@click.option(
    "--scaffold", metavar="NAME", default="auto", show_default=True, help="agent; auto: told from each request"
)
@click.option(
    "--tool-wire", type=click.Choice(["auto", "json", "raw"]), default="auto", show_default=True,
    help="how the model writes tool arguments; auto: from --tool-call-parser",
)  # fmt: skip
@click.option(
    "--workspace", metavar="DIR", type=click.Path(path_type=Path), help="the agents' working copy, a git repository"
)
@click.option("--profiles", metavar="DIR", multiple=True, type=click.Path(path_type=Path), help="further profiles")
@click.option("--record", metavar="FILE", type=click.Path(path_type=Path), help="append what is served to this trace")
@click.option("--redact", metavar="REGEX", multiple=True, help="further secrets that a record leaves out")
@click.option(
    "--state", metavar="DIR", type=click.Path(path_type=Path), help="keep the tenants' live global stores there"
)
@click.option("--share-tenants", is_flag=True, help="one store for all API keys: for a team that may read all its text")
@click.option(
    "--copy-edits", is_flag=True, help="files rewritten as programs of copies: /v1/edits, and the model NAME+copy"
)
@click.option(
    "--copy-anchors", metavar="K", type=click.IntRange(1), default=1, show_default=True,
    help="with --copy-edits: in /v1/edits number every K-th line only",
)  # fmt: skip
@click.option("--fim-family", metavar="NAME|FILE", help="of completions; default: told from the tokenizer's tokens")
@click.option("--fim-order", type=click.Choice(["psm", "spm"]), help="what comes first in a prompt")
@options.playground_option
@click.option(
    "--session-minutes", type=click.FloatRange(min=0, min_open=True), default=240, show_default=True,
    help="unused that long, a session is over",
)  # fmt: skip
@options.caps_option
@options.corpus_option
@options.cost_option
@options.settings_option
@click.option("--print-command", is_flag=True, help="print the vllm command line instead of running it")
def serve_command(
    model: str,
    vllm_flags: tuple[str, ...],
    scaffold: str,
    tool_wire: str,
    workspace: Path | None,
    profiles: tuple[Path, ...],
    record: Path | None,
    redact: tuple[str, ...],
    state: Path | None,
    share_tenants: bool,
    copy_edits: bool,
    copy_anchors: int,
    fim_family: str | None,
    fim_order: str | None,
    playground: bool,
    session_minutes: float,
    caps: Path | None,
    corpus: Path | None,
    cost: Path | None,
    settings_file: Path | None,
    print_command: bool,
) -> None:
    """Serve MODEL (a name or folder, or 'embedded') with vLLM's OpenAI-compatible server and agspec in it.

    All other flags are vLLM's. Point the agent's base URL at it; nothing else is configured.
    """
    from agspec.scaffold import load_profiles
    from agspec.serve.command import command
    from agspec.serve.config import ServeConfig
    from agspec.serve.playground.pages import built
    from agspec.serve.recorder import Recorder
    from agspec.serve.workspace import Workspace

    known = load_profiles(*profiles)
    if scaffold != "auto":
        known.get(scaffold)
    if workspace is not None:
        workspace = Workspace(workspace).root
    settings = options.settings_from(
        settings_file, {"caps": caps, "corpus": corpus, "cost": cost, "state": state and state.absolute()}
    )
    config = ServeConfig.model_validate(
        {"scaffold": scaffold, "tool_wire": tool_wire, "workspace": workspace, "record": record and record.absolute(),
         "profiles": tuple(folder.absolute() for folder in profiles),
         "redact": redact, "share_tenants": share_tenants, "copy_edits": copy_edits,
         "copy_anchors": copy_anchors, "fim_family": fim_family, "fim_order": fim_order,
         "session_minutes": session_minutes, "playground": built() if playground else None}
    )  # fmt: skip
    made = command(model, vllm_flags, settings=settings, config=config, environment=os.environ)
    if print_command:
        click.echo(str(made))
        return
    if config.record is not None:
        Recorder(config.record, redact=config.redact)
    os.execvpe(made.arguments[0], made.arguments, {**os.environ, **made.environment})
