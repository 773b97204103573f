"""``agspec simulate``."""

from __future__ import annotations

from pathlib import Path

import click

from agspec.commands import options
from agspec.replay.methods import METHODS
from agspec.replay.render import ToolWire


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
    default="0.01,0.03,0.065,0.15,0.27,0.4",
    show_default=True,
    help="cost of one more verified token over a step's fixed cost",
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
    ratios: str,
    sam_length: int | None,
    max_draft: int | None,
    caps: Path | None,
    corpus: Path | None,
    settings_file: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Replay recorded outputs against drafting methods: teacher-forced, deterministic, without an engine.

    Every method starts cold and learns from the same sessions in the same order; one trace file is one tenant.
    """
    from agspec.commands.progress import Progress
    from agspec.replay.simulate import simulate
    from agspec.tokens import load_tokenizer

    names = options.split(methods, tuple(METHODS), "--methods")
    cost_ratios = options.numbers(ratios, float, "--cost-ratio")
    flags = {"sam_length": sam_length, "max_draft": max_draft, "caps": caps, "corpus": corpus}
    settings = options.settings_from(settings_file, flags)
    loaded = options.read_traces(traces)
    with Progress("simulating") as progress:
        result = simulate(
            loaded,
            tokenizer=load_tokenizer(tokenizer),
            tool_wire=tool_wire,
            methods=names,
            cost_ratios=cost_ratios,
            settings=settings,
            progress=progress.update,
        )
    options.show(result, as_json=as_json, html=html, title="agspec simulate")
