"""``agspec bench``, and ``agspec bench fim``, which types instead of replaying."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agspec.commands import options
from agspec.replay.render import ToolWire


class _Bench(click.Command):
    """``fim`` in the place of traces is a command of its own; a trace of that name is ``./fim``."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """See super."""
        if args[:1] == ["fim"]:
            from agspec.commands.bench_fim import bench_fim_command

            return bench_fim_command.make_context(f"{info_name} fim", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command("bench", cls=_Bench)
@options.traces_argument
@click.option("--model", metavar="NAME", required=True, help="model name or folder, or 'embedded'")
@options.tool_wire_option
@click.option("--methods", default="async,none,ngram,suffix,agspec", show_default=True, help="methods to compare")
@click.option("--batch", "batches", default="1", show_default=True, help="sessions replayed at a time, e.g. 1,4,16")
@click.option("--max-tokens", type=click.IntRange(2), help="longest output of a call, in tokens")
@click.option("--max-calls", type=click.IntRange(1), help="calls of each session, the first ones")
@click.option("--sessions", type=click.IntRange(1), help="sessions of each trace, the first ones")
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True, help="runs of every method")
@click.option("--dtype", default="bfloat16", show_default=True, help="of the model's weights")
@click.option(
    "--max-model-len", type=click.IntRange(512), default=8192, show_default=True, help="tokens the model sees"
)
@click.option("--full-history", is_flag=True, help="let the session store keep what was cut from long prompts")
@click.option("--cost-ratio", type=float, help="told to agspec; measured on this machine at batch 1: 0.07")
@options.cost_option
@options.max_draft_option
@options.caps_option
@options.corpus_option
@options.settings_option
@options.html_option
@options.json_option
def bench_command(
    traces: tuple[Path, ...],
    model: str,
    tool_wire: ToolWire,
    methods: str,
    batches: str,
    max_tokens: int | None,
    max_calls: int | None,
    sessions: int | None,
    repeats: int,
    dtype: str,
    max_model_len: int,
    full_history: bool,
    cost_ratio: float | None,
    cost: Path | None,
    max_draft: int | None,
    caps: Path | None,
    corpus: Path | None,
    settings_file: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Replay recorded sessions on a real vLLM engine, forced along what was recorded, and time every method.

    `agspec bench fim` times completion for editors instead.

    A prompt that does not fit the model is cut by one rule for all methods: a quarter of the room keeps its head, the
    rest its tail. The rows of a batch are distinct sessions.
    """
    from rich.console import Console

    from agspec.build import step_cost
    from agspec.engine.bench import METHODS, Job, bench, plan_tenants
    from agspec.replay.plan import Planner
    from agspec.tokens import load_tokenizer

    flags = {"cost_ratio": cost_ratio, "cost": cost, "max_draft": max_draft, "caps": caps, "corpus": corpus}
    settings = options.settings_from(settings_file, flags)
    step_cost(settings)
    job = Job(
        model=model,
        methods=options.split(methods, METHODS, "--methods"),
        batches=options.numbers(batches, int, "--batch"),
        repeats=repeats,
        dtype=dtype,
        max_model_len=max_model_len,
        full_history=full_history,
        settings=settings,
    )
    planner = Planner(load_tokenizer(model), tool_wire, max_tokens=max_tokens, context_limit=max_model_len - 1)
    planned = [(trace.name, list(planner.calls(trace))) for trace in options.read_traces(traces)]
    with Console(stderr=True).status("running the engine"):
        result = bench(job, plan_tenants(planned, max_calls=max_calls, sessions=sessions))
    options.show(result, as_json=as_json, html=html, title="agspec bench")
