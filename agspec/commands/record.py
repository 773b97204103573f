"""``agspec record``."""

from __future__ import annotations

from pathlib import Path

import click

from agspec.commands import options


@click.command("record")
@options.url_argument
@click.option(
    "-o", "--output", required=True, metavar="FILE", type=click.Path(path_type=Path), help="trace that is appended to"
)
@click.option("--host", default="127.0.0.1", show_default=True, help="address to listen at")
@click.option("--port", default=8001, show_default=True, help="port to listen at")
@click.option("--redact", metavar="REGEX", multiple=True, help="further secrets that the record leaves out")
@click.option("--profiles", metavar="DIR", multiple=True, type=click.Path(path_type=Path), help="further profiles")
def record_command(
    url: str, output: Path, host: str, port: int, redact: tuple[str, ...], profiles: tuple[Path, ...]
) -> None:
    """Stand between agents and the server at URL, and record what passes as a trace. Ctrl-C ends it.

    URL may be any OpenAI-compatible server; point the agent at http://HOST:PORT/v1. An 'agspec serve' records by
    itself: --record FILE.
    """
    import uvicorn

    from agspec.scaffold import load_profiles
    from agspec.serve.proxy import Listener, recording_proxy
    from agspec.serve.recorder import Recorder

    listener = Listener(Recorder(output, redact=redact), load_profiles(*profiles))
    click.echo(f"recording to {output}: point the agent at http://{host}:{port}/v1", err=True)
    uvicorn.run(recording_proxy(url, listener), host=host, port=port, lifespan="off", log_level="warning")
    click.echo(f"{listener.num_recorded} calls recorded", err=True)
