"""``agspec simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agspec.commands import options
from agspec.errors import SettingsError
from agspec.replay.methods import METHODS
from agspec.replay.render import ToolWire
from agspec.settings import Settings

if TYPE_CHECKING:
    from agspec.replay.costs import NamedCost

RATIOS = "0.01,0.03,0.065,0.15,0.27,0.4"


@click.command("simulate")
@options.traces_argument
@click.option(
    "--tokenizer", metavar="NAME|FILE", required=True, help="tokenizer.json, its folder, 'embedded' or a hub name"
)
@options.tool_wire_option
@click.option("--methods", default=",".join(METHODS), show_default=True, help="methods to compare")
@click.option(
    "--cost-ratio",
    "ratios",
    metavar="RATIO,...",
    help=f"cost of one more verified token over a step's fixed cost  [default: {RATIOS}]",
)
@options.cost_option
@click.option(
    "--batch", type=click.IntRange(1), default=1, show_default=True, help="sessions replayed at a time, in lock-step"
)
@click.option("--sam-length", type=click.IntRange(1), help="tokens that sam drafts  [default: 40]")
@options.max_draft_option
@options.caps_option
@options.corpus_option
@options.settings_option
@options.html_option
@options.json_option
def simulate_command(
    traces: tuple[Path, ...],
    tokenizer: str,
    tool_wire: ToolWire,
    methods: str,
    ratios: str | None,
    cost: Path | None,
    batch: int,
    sam_length: int | None,
    max_draft: int | None,
    caps: Path | None,
    corpus: Path | None,
    settings_file: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Replay recorded outputs against drafting methods: teacher-forced, deterministic, without an engine.

    Every method starts cold and learns from the same sessions in the same order; one trace file is one tenant. The
    speedup is modelled, from a bare cost ratio or from a cost profile (--cost), which knows what a batch costs.
    """
    from agspec.commands.progress import Progress
    from agspec.replay.simulate import simulate
    from agspec.tokens import load_tokenizer

    names = options.split(methods, tuple(METHODS), "--methods")
    flags = {"sam_length": sam_length, "max_draft": max_draft, "caps": caps, "corpus": corpus}
    settings = options.settings_from(settings_file, flags)
    costs = _costs(ratios, cost, settings)
    loaded = options.read_traces(traces)
    with Progress("simulating") as progress:
        result = simulate(
            loaded,
            tokenizer=load_tokenizer(tokenizer),
            tool_wire=tool_wire,
            methods=names,
            costs=costs,
            settings=settings,
            batch=batch,
            progress=progress.update,
        )
    options.show(result, as_json=as_json, html=html, title="agspec simulate")


def _costs(ratios: str | None, profile: Path | None, settings: Settings) -> list[NamedCost]:
    """Those of the flags, else the one of the settings, else the usual ratios."""
    from agspec.replay.costs import NamedCost

    if ratios is not None and profile is not None:
        raise SettingsError("want --cost or --cost-ratio, got both")
    if ratios is None and profile is None:
        profile = settings.cost
        ratios = None if settings.cost_ratio is None else str(settings.cost_ratio)
    if profile is not None:
        return [NamedCost.of_profile(profile)]
    found = options.numbers(RATIOS if ratios is None else ratios, float, "--cost-ratio")
    return [NamedCost.of_ratio(ratio) for ratio in found]
