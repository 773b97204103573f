"""Options several commands share, and how results leave a command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import orjson

from agspec.errors import InputError, SettingsError
from agspec.replay.trace import Trace, read_trace, write_whole
from agspec.resources import data_dir
from agspec.settings import Settings, make_settings

Decorator = Callable[[Any], Any]
PARTS = ("body", "declared")
"""Of an edit's record that has declaration and body."""
COSTS = {"cost", "cost_ratio"}
"""Settings of which one says what a step costs."""

traces_argument: Decorator = click.argument(
    "traces", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
tool_wire_option: Decorator = click.option(
    "--tool-wire",
    type=click.Choice(["json", "raw"]),
    default="json",
    show_default=True,
    help="how the served model writes tool arguments: JSON (Hermes, Qwen2.5) or raw text (Qwen3-Coder)",
)
json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="print the result as JSON on stdout")
html_option: Decorator = click.option(
    "--html", metavar="FILE", type=click.Path(path_type=Path), help="also write a self-contained page with charts"
)
caps_option: Decorator = click.option(
    "--caps", metavar="FILE", type=click.Path(path_type=Path), help="CapTable file; default: the built-in policy"
)
corpus_option: Decorator = click.option(
    "--corpus", metavar="DIR", type=click.Path(path_type=Path), help="frozen corpus, see: agspec corpus build"
)
settings_option: Decorator = click.option(
    "--settings", "settings_file", metavar="FILE", type=click.Path(path_type=Path), help="TOML file of settings"
)
cost_option: Decorator = click.option(
    "--cost", metavar="FILE|NAME", type=click.Path(path_type=Path), help="cost profile, see: agspec profile --list"
)
url_argument: Decorator = click.argument("url", metavar="URL")
api_key_option: Decorator = click.option("--api-key", metavar="KEY", envvar="OPENAI_API_KEY", help="the server's key")
playground_option: Decorator = click.option(
    "--playground", is_flag=True, help="an editor that completes, at /playground; npm builds the page once"
)
max_draft_option: Decorator = click.option(
    "--max-draft", type=click.IntRange(1, 128), help="longest draft of agspec and sam  [default: 48]"
)


def trace_path(path: Path) -> Path:
    """``path``, or the shipped session of that name where no such file exists."""
    if path.exists() or path.suffix or len(path.parts) > 1:
        return path
    shipped = sorted(file.name.removesuffix(".jsonl.gz") for file in data_dir("replays").glob("*.jsonl.gz"))
    if path.name in shipped:
        return data_dir("replays") / f"{path.name}.jsonl.gz"
    raise InputError(f"{path}: want a trace file or a shipped session ({', '.join(shipped)}), found neither")


def read_traces(paths: Iterable[Path]) -> list[Trace]:
    """Traces of files or of shipped sessions; raises InputError before any work is done."""
    return [read_trace(trace_path(path)) for path in paths]


def split(value: str, known: tuple[str, ...], flag: str) -> tuple[str, ...]:
    """``a,b`` -> names in order; SettingsError names an unknown one."""
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    for name in names:
        if name not in known:
            raise SettingsError(f"{flag}: want some of {','.join(known)}, got {name}")
    if not names:
        raise SettingsError(f"{flag}: want at least one of {','.join(known)}, got none")
    return names


def numbers(value: str, kind: type[Any], flag: str, *, zero: bool = False) -> tuple[Any, ...]:
    """``1,4`` -> positive numbers of ``kind``, or 0 where ``zero`` allows it; SettingsError otherwise."""
    try:
        found = tuple(kind(part) for part in value.split(",") if part.strip())
    except ValueError:
        found = ()
    if not found or any(not (number > 0 or (zero and number == 0)) for number in found):
        kinds = "numbers from 0 on" if zero else "positive numbers"
        raise SettingsError(f"{flag}: want {kinds} joined by commas, got {value!r}")
    return found


def settings_from(file: Path | None, flags: Mapping[str, Any]) -> Settings:
    """Settings of ``file``, then the flags that were given: a cost of theirs goes before one of the file."""
    from agspec.settings import read_settings

    base = read_settings(file).model_dump() if file else {}
    given = {key: value for key, value in flags.items() if value is not None}
    if given.keys() & COSTS:
        base = {key: value for key, value in base.items() if key not in COSTS}
    return make_settings({**base, **given}, where=str(file or "flags"))


def show(result: dict[str, Any], *, as_json: bool, html: Path | None, title: str) -> None:
    """JSON or tables on stdout; the page where asked for, whole or not at all."""
    if html is not None:
        from agspec.replay.report import html_page

        write_whole(html, html_page([result], title=title).encode())
    if as_json:
        click.echo(orjson.dumps(result, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode())
        return
    from agspec.replay.report import table

    print_table(table(result))
    if html is not None:
        click.echo(f"report: {html.resolve()}", err=True)


def print_table(table: Any) -> None:
    """A rich table on stdout, 120 columns wide where that is no terminal."""
    from rich.console import Console

    console = Console()
    (console if console.is_terminal else Console(width=120)).print(table)
