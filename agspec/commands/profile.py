"""``agspec profile``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from agspec.commands import options
from agspec.errors import SettingsError

if TYPE_CHECKING:
    from rich.table import Table

    from agspec.costfile import CostFile


@click.command("profile")
@click.option("--model", metavar="NAME", help="model name or folder, or 'embedded'")
@click.option("--batch", "batches", default="1,2,4,8,16", show_default=True, help="rows that decode together")
@click.option(
    "--drafted", default="0,1,2,4,8,16,32,48", show_default=True, help="drafted tokens a row; 0 is always measured"
)
@click.option("--repeats", type=click.IntRange(1), default=4, show_default=True, help="rounds over all of it")
@click.option("--context", type=click.IntRange(1), default=1000, show_default=True, help="tokens of each row's prompt")
@click.option("--dtype", default="bfloat16", show_default=True, help="of the model's weights")
@click.option(
    "--max-model-len", type=click.IntRange(512), default=8192, show_default=True, help="tokens the model sees"
)
@click.option("--eager/--no-eager", default=True, show_default=True, help="vLLM's enforce_eager; match your server's")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="cost profile to write")
@click.option("--list", "listed", is_flag=True, help="show the shipped profiles and measure nothing")
@options.json_option
def profile_command(
    model: str | None,
    batches: str,
    drafted: str,
    repeats: int,
    context: int,
    dtype: str,
    max_model_len: int,
    eager: bool,
    output: Path | None,
    listed: bool,
    as_json: bool,
) -> None:
    """Measure what a step of your model costs here, by batch size and drafted tokens; use the file with --cost.

    Every draft is wrong on purpose, so nothing but the price of verifying is timed. Takes some minutes, at --batch 1
    one or two.
    """
    if listed:
        _show_list(as_json)
        return
    if model is None:
        raise SettingsError("--model: want a model's name or folder, or 'embedded', got none")
    from agspec.commands.progress import Progress
    from agspec.engine.profile import Job, profile
    from agspec.replay.trace import write_whole

    job = Job(
        model=model,
        batches=tuple(sorted(set(options.numbers(batches, int, "--batch")))),
        drafted=_drafted(drafted),
        repeats=repeats,
        context=context,
        dtype=dtype,
        max_model_len=max_model_len,
        eager=eager,
    )
    with Progress("profiling", patience_s=0) as progress:
        found = profile(job, progress.update)
    if as_json:
        click.echo(found.to_json(), nl=False)
    else:
        click.echo(f"{found.model} on {found.machine}, {found.dtype}: ms a step, by drafted tokens a row")
        options.print_table(_table(found))
        click.echo(
            "r: one more drafted token a row, over a step without drafts\n"
            f"fitted to ascend: no time moved by more than {found.change:.0%}; many percent mean a busy machine"
        )
    if output is not None:
        write_whole(output, found.to_json().encode())


def _drafted(value: str) -> tuple[int, ...]:
    from agspec.draft.caps import MAX_DRAFT

    found = {0, *options.numbers(value, int, "--drafted", zero=True)}
    if not 0 < max(found) <= MAX_DRAFT:
        raise SettingsError(f"--drafted: want numbers up to {MAX_DRAFT}, one above 0, got {value!r}")
    return tuple(sorted(found))


def _table(found: CostFile) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for head in ("batch", *map(str, found.drafted), "r"):
        table.add_column(head, justify="right")
    for batch, row in zip(found.batches, found.step_ms, strict=True):
        table.add_row(str(batch), *(f"{time:.1f}" for time in row), f"{found.ratio(batch):.3f}")
    return table


def _show_list(as_json: bool) -> None:
    from rich import box
    from rich.table import Table

    from agspec.costfile import list_costs, read_cost_file

    files = {name: read_cost_file(name) for name in list_costs()}
    if as_json:
        keys = {"model", "machine", "dtype", "estimate", "source", "date"}
        told = {name: file.model_dump(include=keys) for name, file in files.items()}
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode())
        return
    table = Table(box=box.SIMPLE_HEAD)
    for head in ("name", "model", "machine", "dtype", "", "r at batch"):
        table.add_column(head)
    for name, file in files.items():
        ends = (file.batches[0], file.batches[-1])
        ratios = ", ".join(f"{batch}: {file.ratio(batch):.3f}" for batch in ends)
        kind = "estimate" if file.estimate else "measured"
        table.add_row(name, file.model, file.machine, file.dtype, kind, ratios)
    options.print_table(table)
