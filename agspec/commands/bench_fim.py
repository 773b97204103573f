"""``agspec bench fim``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import orjson

from agspec.commands import options
from agspec.commands.progress import Progress


@click.command("fim")
@click.option("--editors", type=click.IntRange(1), default=10, show_default=True, help="at once")
@click.option("--seconds", type=click.FloatRange(1), default=60, show_default=True, help="of typing, for each row")
@click.option("--order", "orders", default="psm,spm", show_default=True, help="prompts: prefix or suffix first")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="keep the result, as JSON")
@options.json_option
def bench_fim_command(editors: int, seconds: float, orders: str, output: Path | None, as_json: bool) -> None:
    """Let simulated editors type on the embedded model: latency, cache, cancelling, with and without drafts.

    That model knows no middle, so what it writes is forced: latency is measured, not quality. Each editor types a file
    of Python's own library at a person's pace, from a seed; `agspec fim cost --measured FILE` takes the result.
    """
    from agspec.fim.families import ORDERS
    from agspec.replay.trace import check_place, write_whole
    from agspec.serve.fim.bench import FimJob, bench_fim

    if output is not None:
        check_place(output)

    asked = options.split(orders, ORDERS, "--order")
    job = FimJob(editors=editors, seconds=seconds, orders=tuple(order for order in ORDERS if order in asked))
    with Progress("typing") as progress:
        result = bench_fim(job, progress.update)
    content = orjson.dumps(result, option=orjson.OPT_INDENT_2)
    if output is not None:
        write_whole(output, content + b"\n")
    if as_json:
        click.echo(content)
        return
    click.echo(result["note"])
    for name, told in (("cpu_ms", "CPU time a request"), ("wall_ms", f"wall time, {editors} editors at once")):
        click.echo(f"our own part, engine idle: {told} {_both(result['overhead'][name], 1)} ms (p50 / p95)")
    for row in result["rows"]:
        _show(row)


def _both(found: dict[str, float] | None, digits: int = 0) -> str:
    return "-" if found is None else f"{found['p50']:.{digits}f} / {found['p95']:.{digits}f}"


def _show(row: dict[str, Any]) -> None:
    again = "-" if row["again_share"] is None else f"{row['again_share']:.1%}"
    click.echo(
        f"\n{row['order']}, drafts {'on' if row['drafts'] else 'off'} (p50 / p95)\n"
        f"  first text {_both(row['first_ms'])} ms, whole suggestion {_both(row['whole_ms'])} ms,"
        f" our own part before the engine {_both(row['prepare_ms'], 1)} ms\n"
        f"  {row['num_keys']} keys: {row['num_from_cache']} answered by the client's cache,"
        f" {row['given_up_share']:.0%} of the rest given up in its pause, {row['num_asked']} requests,"
        f" {row['cancelled_share']:.0%} of them cancelled\n"
        f"  {row['cached_share']:.1%} of prompt tokens cached, {row['fresh_tokens_a_key']:.1f} prefilled a key,"
        f" {again} of a prompt again beside the text behind the cursor\n"
        f"  {row['num_accepted_tokens']} drafted tokens accepted, {row['tokens_a_completion']:.1f} tokens a completion"
        + (f", errors {row['errors']}" if row["errors"] else "")
    )
