"""``agspec verify``."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from agspec.commands import options
from agspec.errors import InputError


@click.command("verify")
@click.option("--model", metavar="NAME", required=True, help="model name or folder, or 'embedded'")
@click.option(
    "--prompts", metavar="FILE", type=click.Path(path_type=Path), help="one prompt a line; default: five of ours"
)
@click.option("--max-tokens", type=click.IntRange(1), default=300, show_default=True, help="tokens a prompt")
@click.option("--batch", type=click.IntRange(1), default=1, show_default=True, help="prompts decoded at a time")
@click.option("--dtype", default="float32", show_default=True, help="only float32 is a fair test, see README")
@options.settings_option
@options.json_option
def verify_command(
    model: str,
    prompts: Path | None,
    max_tokens: int,
    batch: int,
    dtype: str,
    settings_file: Path | None,
    as_json: bool,
) -> None:
    """Generate greedily with and without agspec and compare token by token.

    Exits with 1 when a pair parts where the two best logits are 1e-4 or more apart.
    """
    from rich.console import Console

    from agspec.engine.verify import LOGIT_GAP, PROMPTS, verify

    texts = PROMPTS if prompts is None else _lines(prompts)
    settings = options.settings_from(settings_file, {})
    with Console(stderr=True).status("generating with and without agspec"):
        result = verify(model, texts, max_tokens=max_tokens, batch=batch, settings=settings, dtype=dtype)
    if as_json:
        click.echo(orjson.dumps(result, option=orjson.OPT_INDENT_2).decode())
    else:
        for row in result["prompts"]:
            click.echo(_sentence(row))
        drafted = result["drafted"]
        click.echo(
            f"{'identical' if result['identical'] else 'NOT identical'}: {len(texts)} prompts in {dtype}, "
            f"{drafted['num_accepted_tokens']} of {drafted['num_draft_tokens']} drafted tokens accepted"
        )
    if any(row["logit_gap"] is not None and row["logit_gap"] >= LOGIT_GAP for row in result["prompts"]):
        raise InputError(f"outputs part where the two best logits are {LOGIT_GAP} or more apart")


def _sentence(row: dict[str, object]) -> str:
    told = " ".join(str(row["prompt"]).split())
    if row["identical"]:
        return f"identical for {row['num_tokens']} tokens: {told}"
    return f"parts at token {row['parts_at']}, logit gap {row['logit_gap']:.2e}: {told}"


def _lines(path: Path) -> tuple[str, ...]:
    try:
        lines = tuple(line for line in path.read_text("utf-8").splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: want a text file of prompts, got: {error}") from error
    if not lines:
        raise InputError(f"{path}: want at least one prompt, got none")
    return lines
