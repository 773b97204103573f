"""``agspec playground``."""

from __future__ import annotations

import click

from agspec.commands import options


@click.command("playground")
@options.url_argument
@click.option("--host", default="127.0.0.1", show_default=True, help="address to listen at")
@click.option("--port", default=8013, show_default=True, help="port to listen at")
def playground_command(url: str, host: str, port: int) -> None:
    """Show an editor that completes, in the browser, from the server at URL. Ctrl-C ends it.

    URL is an 'agspec serve' or an 'agspec fim serve'; both also have the page themselves, at /playground, with
    --playground. It is built once with npm.
    """
    import uvicorn
    from rich.console import Console

    from agspec.serve.playground.app import PLACE, with_page
    from agspec.serve.playground.pages import built
    from agspec.serve.proxy import Forward

    with Console(stderr=True).status("building the page"):
        folder = built()
    click.echo(f"open http://{host}:{port}{PLACE}/", err=True)
    behind = Forward(url.rstrip("/").removesuffix("/v1"))
    uvicorn.run(with_page(folder, behind), host=host, port=port, lifespan="off", log_level="warning")
