"""``agspec doctor``."""

from __future__ import annotations

import click

from agspec.commands import options
from agspec.errors import InputError


@click.command("doctor")
@options.url_argument
@options.api_key_option
@click.option("--model", metavar="NAME", help="the model your agent asks for  [default: the first one served]")
def doctor_command(url: str, api_key: str | None, model: str | None) -> None:
    """Check that an agent pointed at URL will work and be drafted for; say what to fix."""
    from agspec.serve.client import Client, examine

    wrong = 0
    with Client(url, api_key=api_key) as client:
        for finding in examine(client, model=model):
            wrong += finding.fix is not None
            click.echo(f"ok   {finding.what}" if finding.fix is None else f"fix  {finding.what}: {finding.fix}")
    if wrong:
        raise InputError(f"{wrong} to fix")
