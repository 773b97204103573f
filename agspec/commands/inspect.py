"""``agspec inspect``: what a caps file holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agspec.commands import options

if TYPE_CHECKING:
    from agspec.captable import CapFile


@click.command("inspect")
@click.argument("file", metavar="CAPS", type=click.Path(path_type=Path))
@options.html_option
@options.json_option
def inspect_command(file: Path, html: Path | None, as_json: bool) -> None:
    """Show a caps file: what it was made from, caps and survival by role, and how its odds held on unseen sessions."""
    from agspec.captable import read_cap_file
    from agspec.replay.report.caps import caps_page
    from agspec.replay.trace import write_whole

    found = read_cap_file(file)
    if html is not None:
        write_whole(html, caps_page(found, title=file.name).encode())
        click.echo(f"report: {html.resolve()}", err=True)
    show_caps(found, as_json=as_json)


def show_caps(file: CapFile, *, as_json: bool) -> None:
    """JSON without the packed weights, or tables, on stdout."""
    from agspec.replay.report.caps import caps_tables

    if as_json:
        click.echo(file.to_json(odds=False), nl=False)
        return
    for part in caps_tables(file):
        options.print_table(part)
