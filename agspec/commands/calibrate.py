"""``agspec calibrate``."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from agspec.commands import options
from agspec.draft.caps import DEFAULT_COST_RATIO
from agspec.errors import InputError
from agspec.replay.render import ToolWire


@click.command("calibrate")
@options.traces_argument
@click.option("--tokenizer", metavar="NAME|FILE", required=True, help="the served model's tokenizer")
@options.tool_wire_option
@click.option("--cost-ratio", type=float, help="cost of one more verified token over a step's  [default: 0.03]")
@options.cost_option
@click.option(
    "--folds", type=click.IntRange(0), default=3, show_default=True, help="parts held out in turn; 0: no evaluation"
)
@click.option(
    "-o", "--output", metavar="FILE", required=True, type=click.Path(path_type=Path), help="caps file to write"
)
@options.settings_option
@options.json_option
def calibrate_command(
    traces: tuple[Path, ...],
    tokenizer: str,
    tool_wire: ToolWire,
    cost_ratio: float | None,
    cost: Path | None,
    folds: int,
    output: Path,
    settings_file: Path | None,
    as_json: bool,
) -> None:
    """Learn from recorded sessions how likely drafts are accepted, and how far they pay; use it with --caps.

    The replay is the one of agspec simulate. Held-out sessions tell whether what was learned holds: see agspec inspect.
    """
    from agspec.build import step_cost
    from agspec.captable import TraceInfo
    from agspec.commands.inspect import show_caps
    from agspec.commands.progress import Progress
    from agspec.replay.calibrate import calibrate
    from agspec.replay.plan import Planner
    from agspec.replay.trace import check_place, checksum, write_whole
    from agspec.tokens import load_tokenizer

    settings = options.settings_from(settings_file, {"cost_ratio": cost_ratio, "cost": cost})
    step_cost(settings)
    check_place(output)
    paths = [options.trace_path(path) for path in traces]
    loaded = options.read_traces(traces)
    tokens = load_tokenizer(tokenizer)
    planner = Planner(tokens, tool_wire)
    planned = [list(planner.calls(trace)) for trace in loaded]
    if not any(planned):
        raise InputError(f"{', '.join(map(str, traces))}: want recorded outputs, got none")
    with Progress("calibrating") as progress:
        file = calibrate(planned, settings=settings, tokenizer=tokens, folds=folds, progress=progress.update)
    told = [
        TraceInfo(
            name=trace.name,
            sha256=checksum(path),
            num_sessions=len({call.session for call in calls}),
            num_calls=len(calls),
            num_tokens=sum(int(call.tape.size) for call in calls),
        )
        for trace, path, calls in zip(loaded, paths, planned, strict=True)
    ]
    ratio = DEFAULT_COST_RATIO if settings.cost_ratio is None else settings.cost_ratio
    file = file.model_copy(
        update={
            "date": datetime.date.today().isoformat(),
            "tool_wire": tool_wire,
            "lookup": settings.lookup,
            "cost": f"ratio {ratio:g}" if settings.cost is None else str(settings.cost),
            "traces": tuple(told),
        }
    )
    write_whole(output, file.to_json().encode())
    click.echo(f"caps: {output.resolve()}", err=True)
    show_caps(file, as_json=as_json)
