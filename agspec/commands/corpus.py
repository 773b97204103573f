"""``agspec corpus``: the frozen half of the global store."""

from __future__ import annotations

from pathlib import Path

import click

from agspec.commands import options
from agspec.replay.render import ToolWire


@click.group("corpus")
def corpus_command() -> None:
    """A frozen corpus of what models wrote, built from traces and opened read-only."""


@corpus_command.command("build")
@options.traces_argument
@click.option("-o", "--output", metavar="DIR", required=True, type=click.Path(path_type=Path), help="folder to make")
@click.option("--tokenizer", metavar="NAME|FILE", required=True, help="the served model's tokenizer")
@options.tool_wire_option
@options.json_option
def build_command(traces: tuple[Path, ...], output: Path, tokenizer: str, tool_wire: ToolWire, as_json: bool) -> None:
    """Index the outputs recorded in traces; use the folder with --corpus."""
    import orjson

    from agspec.replay.corpus import build_corpus
    from agspec.tokens import load_tokenizer

    info = build_corpus(options.read_traces(traces), output, load_tokenizer(tokenizer), tool_wire)
    if as_json:
        click.echo(orjson.dumps(info).decode())
    else:
        click.echo(f"{output}: {info['num_tokens']} tokens of {info['num_calls']} outputs")
