"""``agspec scaffold``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import orjson

from agspec.errors import InputError


@click.group("scaffold")
def scaffold_command() -> None:
    """Scaffold profiles: which agents are known, and what a request is taken for."""


@scaffold_command.command("list")
@click.option("--profiles", metavar="DIR", multiple=True, type=click.Path(path_type=Path), help="further profiles")
def list_command(profiles: tuple[Path, ...]) -> None:
    """List the profiles; a broken one in DIR is one line that says where."""
    from agspec.scaffold import load_profiles

    for name, scaffold in sorted(load_profiles(*profiles).by_name.items()):
        click.echo(f"{name:16} {scaffold.profile.description}")


@scaffold_command.command("check")
@click.argument("request", type=click.Path(path_type=Path))
@click.option("--path", default="/v1/chat/completions", show_default=True, help="the route it is posted to")
@click.option("--header", "headers", metavar="NAME:VALUE", multiple=True, help="a header of the request")
@click.option("--profiles", metavar="DIR", multiple=True, type=click.Path(path_type=Path), help="further profiles")
def check_command(request: Path, path: str, headers: tuple[str, ...], profiles: tuple[Path, ...]) -> None:
    """Say what REQUEST, the JSON body of one, is taken for and why: agent, role, session, opened files."""
    from agspec.scaffold import load_profiles
    from agspec.serve.bodies import ROUTES, read
    from agspec.serve.speaker import SessionFields, session_named

    if path not in ROUTES:
        raise InputError(f"--path: want one of {', '.join(ROUTES)}, got {path}")
    body = _body(request)
    named = {name.strip().lower(): value.strip() for name, _, value in (header.partition(":") for header in headers)}
    known = load_profiles(*profiles)
    asked = read(path, body)
    match = known.classify(asked.messages, tools=asked.tools, headers=named)
    click.echo(f"agent    {match.scaffold.name}: {match.scaffold.profile.description}")
    click.echo(f"role     {match.role}")
    for marker in match.because:
        click.echo(f"because  {marker.where} has {marker.text!r}" + (f", role {marker.role}" if marker.role else ""))
    if not match.because:
        click.echo("because  no marker of a known agent was found")
    session = session_named(named, body, SessionFields(known))
    click.echo(f"session  {'told from what was said before' if session is None else session}")
    for message in asked.messages:
        for file in match.scaffold.opened_files(message):
            whole = "whole" if file.complete else "a part"
            click.echo(f"opened   {file.path or 'a text without a path'}: {whole}, {file.text.count(chr(10))} lines")


def _body(path: Path) -> dict[str, Any]:
    try:
        body = orjson.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: want a request's JSON body, got: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path}: want a request's JSON body, got: {error}") from error
    if not isinstance(body, dict):
        raise InputError(f"{path}: want a JSON object, got {type(body).__name__}")
    return body
