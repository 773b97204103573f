"""``agspec copy``: edits as programs of copies and new text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from agspec.commands import options
from agspec.commands.copy_kernel import kernel_command
from agspec.commands.copy_train import export_command, train_command
from agspec.errors import CopyError, InputError

if TYPE_CHECKING:
    from agspec.copyedit.kernel import Kernel

FILE = click.Path(path_type=Path)
output_option = click.option("-o", "--output", metavar="FILE", type=FILE, help="write it there, not to stdout")


@click.group("copy")
def copy_command() -> None:
    """Copy-as-Decode: an edit as copies of lines and new text. Bytes in, bytes out."""


copy_command.add_command(kernel_command)
copy_command.add_command(export_command)
copy_command.add_command(train_command)


@copy_command.command("compile")
@click.argument("files", metavar="BEFORE... AFTER", nargs=-1, required=True, type=FILE)
@click.option("--spans", is_flag=True, help="copy within lines too, by byte column")
@output_option
def compile_command(files: tuple[Path, ...], spans: bool, output: Path | None) -> None:
    """The cheapest program that makes AFTER of the files BEFORE, of which there may be several."""
    from agspec.copyedit.compile import compile_edit
    from agspec.copyedit.program import show
    from agspec.copyedit.source import Source

    *before, after = _contents(files, "BEFORE... AFTER")
    _put(show(compile_edit([Source(data) for data in before], after, spans=spans)), output)


@copy_command.command("resolve")
@click.argument("files", metavar="SOURCE... PROGRAM", nargs=-1, required=True, type=FILE)
@click.option(
    "--limit", metavar="BYTES", type=click.IntRange(min=0), default=1 << 28, show_default=True, help="at most"
)
@output_option
def resolve_command(files: tuple[Path, ...], limit: int, output: Path | None) -> None:
    """What PROGRAM writes, given its sources; one that does not fit them is an error that says where."""
    from agspec.copyedit.program import parse
    from agspec.copyedit.resolve import resolve
    from agspec.copyedit.source import Source

    *sources, program = _contents(files, "SOURCE... PROGRAM")
    try:
        _put(resolve(parse(program), [Source(data) for data in sources], limit=limit), output)
    except CopyError as error:
        raise InputError(f"{files[-1]}: {error}") from error


@copy_command.command("grammar")
@click.argument("files", metavar="SOURCE...", nargs=-1, required=True, type=FILE)
@click.option("--format", "kind", type=click.Choice(["ebnf", "lark"]), default="ebnf", show_default=True,
              help="ebnf: xgrammar's; lark: guidance's")  # fmt: skip
@output_option
def grammar_command(files: tuple[Path, ...], kind: str, output: Path | None) -> None:
    """The grammar of programs over SOURCE for structured_outputs of any vLLM; i <= j is left to resolve."""
    from agspec.copyedit.grammars import ebnf, lark
    from agspec.copyedit.source import Source

    sources = [Source(data) for data in map(_read, files)]
    _put((ebnf(sources) if kind == "ebnf" else lark(sources)).encode(), output)


@copy_command.command("ceiling")
@click.argument("data", metavar="DATA.jsonl", type=FILE)
@click.option("--tokenizer", metavar="NAME|FILE", required=True, help="the model's tokenizer")
@click.option("--part", type=click.Choice(options.PARTS), default="declared", show_default=True,
              help="of records with declaration and body: the body alone, or both")  # fmt: skip
@click.option(
    "--kernel", metavar="paper|FILE", default="paper", show_default=True,
    help="what a copy costs: the paper's two points, or what agspec copy kernel wrote",
)  # fmt: skip
@options.json_option
def ceiling_command(data: Path, tokenizer: str, part: str, kernel: str, as_json: bool) -> None:
    """What copying could give at most on edits whose result is known.

    DATA.jsonl (or .gz): {"before", "after"} a line, or HumanEvalPack's fields.
    """
    from dataclasses import asdict

    from agspec.copyedit.ceiling import measure
    from agspec.copyedit.noise import exact_matches
    from agspec.replay.edits import read_cases
    from agspec.tokens import load_tokenizer

    cases = read_cases(data, part=part)
    sums = measure(cases, load_tokenizer(tokenizer), _kernel(kernel))
    noise = exact_matches(cases)
    told = {**asdict(sums), "histogram": dict(sorted(sums.histogram.items())), "bounds": sums.bounds, "exact": noise}
    if as_json:
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS))
        return
    number, output = max(1, sums.num_cases), max(1, sums.output)
    click.echo(f"{sums.num_cases} edits, {output / number:.1f} tokens of output each, {sums.num_exact} byte-exact")
    click.echo(
        f"covered          {sums.covered / output:.2%} by lines, {sums.covered_by_tokens / output:.2%} by tokens"
    )
    for name, tokens in (("program", sums.ordered), ("cheapest program", sums.cheap),
                         ("unified diff", sums.unified_diff), ("search/replace", sums.search_replace)):  # fmt: skip
        click.echo(f"{name:16} {tokens / number:.1f} tokens each")
    click.echo(f"shorter          {sums.num_shorter / number:.1%} of the cheapest programs than their output")
    for name, bound in sums.bounds.items():
        click.echo(f"at most          {bound:.2f} x, {name}")
    click.echo("copied spans     " + ", ".join(f"{low}+: {n}" for low, n in sorted(sums.histogram.items())))
    click.echo("exact if moved   " + ", ".join(f"{name} {share:.1%}" for name, share in noise.items()))


def _contents(files: tuple[Path, ...], want: str) -> list[bytes]:
    if len(files) < 2:
        raise InputError(f"want {want}, got {files[0]} alone")
    return [_read(path) for path in files]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: want a readable file, got: {error.strerror}") from error


def _put(data: bytes, output: Path | None) -> None:
    from agspec.replay.trace import write_whole

    if output is None:
        click.echo(data, nl=False)
    else:
        write_whole(output, data)


def _kernel(name: str) -> Kernel:
    from agspec.copyedit.kernel import PAPER, Kernel

    if name == "paper":
        return Kernel(PAPER)
    try:
        told: Any = orjson.loads(_read(Path(name)))
        return Kernel(tuple((int(tokens), float(times)) for tokens, times in told["points"]))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{name}: want what agspec copy kernel wrote, got: {error!r:.80}") from error
