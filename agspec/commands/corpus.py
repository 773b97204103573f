"""``agspec corpus``: the frozen half of the global store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from agspec.commands import options
from agspec.errors import InputError, SettingsError
from agspec.replay.corpus.inputs import KINDS
from agspec.replay.render import ToolWire

if TYPE_CHECKING:
    from agspec.corpus import CorpusInfo

folder_argument = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
output_option = click.option(
    "-o", "--output", metavar="DIR", required=True, type=click.Path(path_type=Path), help="folder to make"
)


@click.group("corpus")
def corpus_command() -> None:
    """A frozen corpus of what models wrote, or of source text: built once, memory-mapped, opened read-only."""


@corpus_command.command("build")
@click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=click.Path(path_type=Path))
@output_option
@click.option("--tokenizer", metavar="NAME|FILE", required=True, help="the served model's tokenizer")
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="trace",
    show_default=True,
    help="what SRC is: traces, text files (each one document), or recordings that agspec import reads",
)
@click.option(
    "--exclude-session", "excluded", metavar="NAME|@FILE", multiple=True,
    help="leave out a session's outputs (repeatable; @FILE: one name a line); 'x' leaves out its repeats 'x#2' too",
)  # fmt: skip
@options.tool_wire_option
@options.json_option
def build_command(
    sources: tuple[Path, ...],
    output: Path,
    tokenizer: str,
    kind: str,
    excluded: tuple[str, ...],
    tool_wire: ToolWire,
    as_json: bool,
) -> None:
    """Index recorded outputs, or text, for drafting; use the folder with --corpus.

    SRC: trace files or shipped sessions, directories of them, or what --kind says. Interrupted, the same command goes
    on where it stopped.
    """
    from agspec.commands.progress import Progress
    from agspec.replay.corpus import build_corpus
    from agspec.tokens import load_tokenizer

    paths = [options.trace_path(path) if kind == "trace" else path for path in sources]
    names = [name for value in excluded for name in _names(value)]
    with Progress("corpus") as progress:
        info = build_corpus(
            paths,
            output,
            tokenizer=load_tokenizer(tokenizer),
            tool_wire=tool_wire,
            kind=kind,
            exclude=names,
            progress=progress.update,
        )
    for name, count in info.excluded.items():
        if not count:
            click.echo(f"not among the inputs: session {name}", err=True)
    _show(output, info, as_json=as_json)


@corpus_command.command("info")
@folder_argument
@options.json_option
def info_command(folder: Path, as_json: bool) -> None:
    """Say what a corpus holds and from what it was made."""
    from agspec.corpus import read_info
    from agspec.replay.corpus.told import info_table

    info = read_info(folder)
    if as_json:
        click.echo(_json(info))
        return
    options.print_table(info_table(info))


@corpus_command.command("verify")
@folder_argument
@click.option("--full", is_flag=True, help="look at every token and position, not at samples of them")
@options.json_option
def verify_command(folder: Path, full: bool, as_json: bool) -> None:
    """Check that a corpus is whole: sizes, checksums, order. Exits with 1 and one line where it is not."""
    from agspec.commands.progress import Progress
    from agspec.replay.corpus import verify_corpus

    with Progress("verifying") as progress:
        info = verify_corpus(folder, full=full, progress=progress.update)
    looked = "every position" if full else "sampled positions"
    if as_json:
        click.echo(orjson.dumps({"corpus": str(folder), "whole": True, "full": full}).decode())
    else:
        click.echo(f"{folder}: whole, {info.num_tokens:,} tokens; sizes, checksums and {looked} were checked")


@corpus_command.command("merge")
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@output_option
@options.json_option
def merge_command(folders: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Make one corpus of several of the same tokenizer."""
    from agspec.commands.progress import Progress
    from agspec.replay.corpus import merge_corpora

    with Progress("corpus") as progress:
        info = merge_corpora(folders, output, progress=progress.update)
    _show(output, info, as_json=as_json)


def _names(value: str) -> list[str]:
    """The names that one --exclude-session stands for."""
    if not value.startswith("@"):
        return [value]
    try:
        lines = Path(value[1:]).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{value[1:]}: want a file of session names, got: {error}") from error
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise SettingsError(f"--exclude-session {value}: want at least one name in the file, got none")
    return names


def _show(folder: Path, info: CorpusInfo, *, as_json: bool) -> None:
    if as_json:
        click.echo(_json(info))
        return
    click.echo(
        f"{folder}: {info.num_tokens:,} tokens of {info.num_documents:,} documents, "
        f"{info.num_bytes / info.num_tokens:.1f} bytes a token"
    )


def _json(info: CorpusInfo) -> str:
    return orjson.dumps(info.model_dump(mode="json"), option=orjson.OPT_INDENT_2).decode()
