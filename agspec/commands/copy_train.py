"""``agspec copy export-sft`` and ``agspec copy train``."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from agspec.commands import options
from agspec.errors import InputError

FILE = click.Path(path_type=Path)


@click.command("export-sft")
@click.argument("sources", metavar="REPO|DATA.jsonl...", nargs=-1, required=True, type=FILE)
@click.option("--model", metavar="NAME", required=True, help="whose tokenizer and chat template are used")
@click.option("-o", "--output", metavar="FILE", type=FILE, required=True, help="JSON lines")
@click.option("--part", type=click.Choice(options.PARTS), default="declared", show_default=True,
              help="of records with declaration and body: the body alone, or both")  # fmt: skip
@click.option("--max-tokens", type=click.IntRange(1), default=4096, show_default=True, help="of a record; longer go")
@click.option("--max-commits", type=click.IntRange(1), help="of a repository: the newest ones")
@click.option(
    "--anchors", metavar="K", type=click.IntRange(1), default=1, show_default=True, help="number every K-th line"
)
@options.json_option
def export_command(
    sources: tuple[Path, ...], model: str, output: Path, part: str, max_tokens: int, max_commits: int | None,
    anchors: int, as_json: bool,
) -> None:  # fmt: skip
    """Edits as records to fine-tune a model on: instruction, numbered source, program.

    A folder is a git repository: each file that a commit changes is an edit, asked for by the commit's message. Records
    hold messages, and prompt and completion as the model's chat template writes them.
    """
    from agspec.replay.edits import read_cases, read_history
    from agspec.replay.trace import write_whole
    from agspec.tokens import load_tokenizer
    from agspec.train.records import load_chat_tokenizer, records

    cases = [
        case
        for path in sources
        for case in (read_history(path, max_commits=max_commits) if path.is_dir() else read_cases(path, part=part))
    ]
    chat = load_chat_tokenizer(model)
    found = list(records(cases, load_tokenizer(model), max_tokens=max_tokens, chat=chat, every=anchors))
    if not found:
        raise InputError(f"{sources[0]}: want edits of at most {max_tokens} tokens, found none in {len(cases)}")
    write_whole(output, b"".join(orjson.dumps(record) + b"\n" for record in found))
    if as_json:
        click.echo(orjson.dumps({"num_edits": len(cases), "num_records": len(found)}).decode())
    else:
        click.echo(f"{len(found)} records of {len(cases)} edits in {output}", err=True)


@click.command("train")
@click.argument("data", metavar="SFT.jsonl", type=FILE)
@click.option("--model", metavar="NAME", required=True, help="model name or folder, or 'embedded'")
@click.option("-o", "--output", metavar="DIR", type=FILE, required=True, help="the model that comes out")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), default=20, show_default=True, help="of training")
@click.option("--epochs", type=click.IntRange(1), default=3, show_default=True, help="over the records, at most")
@click.option("--held-out", type=click.IntRange(1), default=40, show_default=True, help="edits to judge by")
@click.option("--rank", type=click.IntRange(1), default=16, show_default=True, help="of the adapters")
@click.option("--rate", type=click.FloatRange(0, min_open=True), default=3e-4, show_default=True, help="learning rate")
@click.option("--max-model-len", type=click.IntRange(256), default=4096, show_default=True)
@options.json_option
def train_command(
    data: Path, model: str, output: Path, minutes: float, epochs: int, held_out: int, rank: int, rate: float,
    max_model_len: int, as_json: bool,
) -> None:  # fmt: skip
    """Fine-tune a model on what export-sft wrote, and tell how many edits come out exact before and after."""
    from agspec.commands.progress import Progress
    from agspec.replay.trace import open_bytes
    from agspec.train.tune import Job, tune

    job = Job(
        model=model, output=output, minutes=minutes, epochs=epochs, held_out=held_out, rank=rank, rate=rate,
        max_model_len=max_model_len,
    )  # fmt: skip
    found = []
    for number, line in enumerate(open_bytes(data).splitlines(), 1):
        try:
            record = orjson.loads(line)
            if not {"messages", "before", "after"} <= record.keys():
                raise ValueError("no messages, before and after")
        except (AttributeError, ValueError) as error:
            raise InputError(f"{data}, line {number}: want what copy export-sft wrote, got: {error}") from error
        found.append(record)
    with Progress("training", patience_s=0) as progress:
        told = tune(job, found, progress.update)
    if as_json:
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode())
        return
    training = told["training"]
    click.echo(
        f"trained on {training['num_records']} records in {training['minutes']} min, "
        f"loss {training['loss_first']} -> {training['loss_last']}"
    )
    for when in ("before", "after"):
        row = told[when]
        click.echo(
            f"{when:6}  {row['exact']} of {row['of']} exact, {row['resolved']} resolved, {row['with_copies']} copied"
        )
