"""``agspec import``: recorded sessions in, one trace file out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console

from agspec.errors import SettingsError
from agspec.replay.importers import EDIT_FORMATS, KINDS, import_sources
from agspec.replay.trace import write_trace


@click.command("import")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="trace to write (.gz: gzipped)",
)
@click.option("--skip-bad", is_flag=True, help="count and skip bad records instead of stopping at the first")
@click.option(
    "--edit-format",
    type=click.Choice(EDIT_FORMATS),
    help="git: how a commit's edit is written  [default: search-replace]",
)
@click.option("--max-commits", metavar="N", type=click.IntRange(min=1), help="git: only the newest N commits")
@click.option("--json", "as_json", is_flag=True, help="print the counts as JSON on stdout")
def import_command(
    kind: str,
    sources: tuple[Path, ...],
    output: Path,
    skip_bad: bool,
    edit_format: str | None,
    max_commits: int | None,
    as_json: bool,
) -> None:
    """Turn recorded sessions of KIND into a trace file.

    Sources may be gzipped; a directory stands for the files of the kind below it (git: a repository).
    """
    if any(source.resolve() == output.resolve() for source in sources):
        raise SettingsError(f"--output: want another file than the source, got {output}")
    given = {"edit_format": edit_format, "max_commits": max_commits}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    name = output.name.removesuffix(".gz").removesuffix(".jsonl")
    talk = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    with talk.status(f"importing {kind}"):
        trace, skipped = import_sources(kind, sources, name=name, skip_bad=skip_bad, **options)
        write_trace(trace, output)
    for reason in skipped:
        talk.print(f"skipped: {reason}")
    num_sessions, num_calls = len(trace.sessions), len(trace.calls)
    talk.print(f"{output}: {num_sessions} sessions, {num_calls} calls, {len(skipped)} bad records skipped")
    if as_json:
        counts = {
            "kind": kind,
            "output": str(output),
            "sessions": num_sessions,
            "calls": num_calls,
            "skipped": len(skipped),
            "skipped_reasons": skipped,
        }
        click.echo(orjson.dumps(counts).decode())
