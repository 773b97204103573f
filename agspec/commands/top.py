"""``agspec top``."""

from __future__ import annotations

import time
from typing import Any

import click

from agspec.commands import options


@click.command("top")
@options.url_argument
@options.api_key_option
@click.option("--every", type=click.FloatRange(0.1), default=2.0, show_default=True, help="seconds between two looks")
@click.option("--once", is_flag=True, help="print one look and end")
def top_command(url: str, api_key: str | None, every: float, once: bool) -> None:
    """Watch a server draft: sessions, roles, accepted tokens by source. Ctrl-C ends it."""
    from rich.live import Live

    from agspec.serve.client import Client
    from agspec.serve.view import view

    with Client(url, api_key=api_key) as client:

        def look() -> tuple[dict[str, Any], list[dict[str, Any]]]:
            return client.json("/v1/agspec/stats"), client.json("/v1/agspec/sessions")

        if once:
            options.print_table(view(*look()))
            return
        with Live(view(*look()), auto_refresh=False) as live:
            try:
                while True:
                    time.sleep(every)
                    live.update(view(*look()), refresh=True)
            except KeyboardInterrupt:
                return
