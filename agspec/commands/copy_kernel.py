"""``agspec copy kernel``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from agspec.commands import options

if TYPE_CHECKING:
    from rich.table import Table

BAR = 4
"""Characters for a doubling, in the plot."""


@click.command("kernel")
@click.option("--model", metavar="NAME", required=True, help="model name or folder, or 'embedded'")
@click.option("--backend", type=click.Choice(["vllm", "hf"]), default="vllm", show_default=True,
              help="vllm: the splice, as served; hf: bare forward passes of transformers")  # fmt: skip
@click.option("--sizes", default="8,16,32,64,128,256,512", show_default=True, help="tokens copied")
@click.option("--contexts", default="1000,4000", show_default=True, help="tokens before them")
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True, help="rounds over all of it")
@click.option("--max-model-len", type=click.IntRange(min=64), default=8192, show_default=True)
@click.option("--dtype", default="bfloat16", show_default=True, help="of the model's weights")
@click.option("--eager/--no-eager", default=True, show_default=True, help="vLLM's enforce_eager")
@click.option("--random-weights", is_flag=True, help="with --backend hf: the model's config is enough")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="for copy ceiling --kernel")
@options.json_option
def kernel_command(
    model: str, backend: str, sizes: str, contexts: str, repeats: int, max_model_len: int, dtype: str, eager: bool,
    random_weights: bool, output: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Time copying N tokens in one forward against decoding them, and decoding them with drafts.

    The machine should be idle. Give the file that -o writes to agspec copy ceiling --kernel.
    """
    from agspec.commands.progress import Progress
    from agspec.engine.copies.kernel import Job, kernel
    from agspec.errors import SettingsError
    from agspec.replay.trace import write_whole

    if random_weights and backend != "hf":
        raise SettingsError("--random-weights: want it with --backend hf, got vllm")
    job = Job.model_validate({
        "model": model, "backend": backend, "sizes": _ascending(sizes, "--sizes"),
        "contexts": _ascending(contexts, "--contexts"), "repeats": repeats, "max_model_len": max_model_len,
        "dtype": dtype, "eager": eager, "random_weights": random_weights,
    })  # fmt: skip
    with Progress("timing copies", patience_s=0) as progress:
        told = kernel(job, progress.update)
    data = orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n"
    if as_json:
        click.echo(data, nl=False)
    else:
        click.echo(f"{model} by {backend}, {dtype}: N tokens copied in one forward, against N decode steps")
        options.print_table(_table(told["rows"]))
    if output is not None:
        write_whole(output, data)


def _ascending(text: str, name: str) -> tuple[int, ...]:
    return tuple(sorted(set(options.numbers(text, int, name))))


def _table(rows: list[dict[str, Any]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for head in ("context", "tokens", "splice ms", "step ms", "times faster", "than drafted"):
        table.add_column(head, justify="right")
    table.add_column("times faster, a doubling each four", no_wrap=True)
    for row in rows:
        than_drafted = row.get("faster_than_drafted")
        table.add_row(
            str(row["context"]), str(row["tokens"]), f"{row['splice_ms']:.1f}", f"{row['step_ms']:.1f}",
            f"{row['faster']:.1f}", "" if than_drafted is None else f"{than_drafted:.1f}",
            "█" * round(BAR * max(0.0, math.log2(row["faster"]))),
        )  # fmt: skip
    return table
