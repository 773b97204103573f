"""``agspec fim``: fill-in-the-middle prompts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from agspec.commands import options
from agspec.errors import InputError

if TYPE_CHECKING:
    from agspec.fim.prompt import FimPrompt

FILE = click.Path(path_type=Path)


@click.group("fim")
def fim_command() -> None:
    """Fill-in-the-middle completion: prompts as each model family wants them."""


@fim_command.command("render")
@click.option("--family", metavar="NAME", help="model family, see: agspec fim families")
@click.option("--tokenizer", metavar="NAME|FILE", help="the family is told from its added tokens, and ids are shown")
@click.option("--prefix-file", metavar="FILE", type=FILE, required=True, help="the text before the cursor")
@click.option("--suffix-file", metavar="FILE", type=FILE, required=True, help="the text after it")
@click.option("--path", metavar="PATH", help="of the file at hand, as the model is told it")
@click.option("--context", metavar="FILE", multiple=True, type=FILE, help="another file to show; may be repeated")
@click.option("--order", type=click.Choice(["psm", "spm"]), help="what comes first; default: the family's own")
@click.option(
    "--window", metavar="TOKENS", type=int, help="of prefix, suffix and context together; default: all of them"
)
@options.json_option
def render_command(
    family: str | None, tokenizer: str | None, prefix_file: Path, suffix_file: Path, path: str | None,
    context: tuple[Path, ...], order: Any, window: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Show the prompt for the text between two files, piece by piece: markers and text, ids, and what ends it."""
    from agspec.fim.families import detect, family_of
    from agspec.fim.languages import language_of
    from agspec.fim.prompt import OtherFile, build
    from agspec.fim.vocabulary import FimVocabulary
    from agspec.fim.window import CHARACTERS, Budget
    from agspec.fim.window import window as cut
    from agspec.tokens import load_tokenizer

    if family is None and tokenizer is None:
        raise InputError("want --family or --tokenizer, got neither")
    loaded = None if tokenizer is None else load_tokenizer(tokenizer)
    if family is not None:
        found = family_of(family)
    else:
        assert loaded is not None
        found = detect({token["content"] for token in loaded.spec.get("added_tokens", [])}, model=str(tokenizer))
    vocabulary = None if loaded is None else FimVocabulary(loaded, found)
    prefix, suffix = _text(prefix_file), _text(suffix_file)
    others = [OtherFile(str(file), _text(file)) for file in context]
    if window is not None:
        count = (
            (lambda text: -(-len(text) // CHARACTERS)) if vocabulary is None else (lambda t: len(vocabulary.text(t)))
        )
        kept = cut(prefix, suffix, Budget.of(window, others=bool(others)), count)
        prefix, suffix = kept.prefix, kept.suffix
    prompt = build(
        found, prefix=prefix, suffix=suffix, path=path, others=others, order=order, vocabulary=vocabulary,
        comment=language_of(path=path).comment or "#",
    )  # fmt: skip
    if as_json:
        click.echo(orjson.dumps(_told(prompt, found.source, found.confidence), option=orjson.OPT_INDENT_2))
    else:
        _show(prompt, found.source, found.confidence)


@fim_command.command("families")
@options.json_option
def families_command(as_json: bool) -> None:
    """The known families: order, markers, and where that is from (A: the owner, B: twice quoted, C: secondary)."""
    from agspec.fim.families import families, names_of

    if as_json:
        click.echo(orjson.dumps([family.model_dump(mode="json") for family in families()], option=orjson.OPT_INDENT_2))
        return
    for family in families():
        layouts = [layout for layout in (family.psm, family.spm) if layout is not None]
        click.echo(f"{family.name:15} {' or '.join(family.orders):10} {family.confidence}  {layouts[0]!r}")
        stops = " ".join(names_of(stop)[0] for stop in family.stops)
        click.echo(f"{'':15} stops: {stops}\n{'':15} from: {family.source}")


@fim_command.command("serve")
@click.option("--backend", metavar="URL", required=True, help="a server of OpenAI's completions: vLLM, llama.cpp, ...")
@click.option("--model", metavar="NAME", required=True, help="as the backend calls it")
@click.option("--tokenizer", metavar="NAME|FILE", help="the model's: prompts go as ids, and tell the family")
@click.option(
    "--family", metavar="NAME|FILE", help="model family, where the tokenizer does not tell it or is not given"
)
@click.option("--order", type=click.Choice(["psm", "spm"]), help="what comes first in a prompt")
@click.option("--backend-key", metavar="KEY", envvar="AGSPEC_BACKEND_KEY", help="the backend's API key")
@click.option("--api-key", metavar="KEY", multiple=True, help="keys that clients have to show; none: everyone may ask")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=20, show_default=True,
              help="seconds that the backend may keep silent")  # fmt: skip
@click.option("--max-model-len", type=click.IntRange(16), default=8192, show_default=True, help="tokens the model sees")
@options.playground_option
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8012, show_default=True)
def serve_command(
    backend: str, model: str, tokenizer: str | None, family: str | None, order: Any, backend_key: str | None,
    api_key: tuple[str, ...], timeout: float, max_model_len: int, playground: bool, host: str, port: int,
) -> None:  # fmt: skip
    """Complete for editors in front of any server of OpenAI's completions; agspec serve has the same routes in it."""
    import uvicorn

    from agspec.fim.vocabulary import FimVocabulary
    from agspec.serve.fim.alone import Alone
    from agspec.serve.fim.backend import HttpBackend
    from agspec.serve.fim.family import family_from
    from agspec.serve.fim.routes import FimRoutes
    from agspec.serve.fim.service import FimService
    from agspec.serve.playground.app import with_page
    from agspec.serve.playground.pages import built
    from agspec.tokens import load_tokenizer

    if family is None and tokenizer is None:
        raise InputError("want --family or --tokenizer, got neither")
    loaded = None if tokenizer is None else load_tokenizer(tokenizer)
    found = family_from(family, {} if loaded is None else loaded.spec, model)
    behind = HttpBackend(backend, model=model, api_key=backend_key, wait_s=timeout, max_model_len=max_model_len)
    service = FimService(behind, found, None if loaded is None else FimVocabulary(loaded, found), order=order)
    routes = FimRoutes(service, models=(model,), keys=api_key)
    click.echo(f"completing with {found.name} prompts at http://{host}:{port}", err=True)
    alone = Alone(routes, behind)
    app = with_page(built(), alone) if playground else alone
    uvicorn.run(app, host=host, port=port, lifespan="off", log_level="warning")


@fim_command.command("cost")
@click.option("--team", type=click.IntRange(1), default=100, show_default=True, help="people")
@click.option("--measured", metavar="FILE", type=FILE, help="what benchmarks.fim wrote; default: one run on a CPU")
@click.option(
    "--hours", type=click.FloatRange(0, 24, min_open=True), default=2.0, show_default=True, help="of typing a day"
)
@click.option("--gpu-hour", type=click.FloatRange(0), default=1.2, show_default=True, help="price")
@click.option("--gpu-prefill", type=click.FloatRange(1), default=20000.0, show_default=True, help="tokens a second")
@click.option(
    "--gpu-decode", type=click.FloatRange(1), default=1500.0, show_default=True, help="tokens a second, batched"
)
@click.option("--laptop-prefill", type=click.FloatRange(1), default=600.0, show_default=True, help="tokens a second")
@click.option("--laptop-decode", type=click.FloatRange(1), default=40.0, show_default=True, help="tokens a second")
@click.option("--laptop-watts", type=click.FloatRange(0), default=45.0, show_default=True)
@click.option("--kwh", type=click.FloatRange(0), default=0.3, show_default=True, help="price")
@click.option("--input-million", type=click.FloatRange(0), default=0.3, show_default=True, help="price of tokens in")
@click.option("--output-million", type=click.FloatRange(0), default=0.9, show_default=True, help="price of tokens out")
@options.json_option
def cost_command(
    team: int, measured: Path | None, hours: float, gpu_hour: float, gpu_prefill: float, gpu_decode: float,
    laptop_prefill: float, laptop_decode: float, laptop_watts: float, kwh: float, input_million: float,
    output_million: float, as_json: bool,
) -> None:  # fmt: skip
    """What completion costs a team in a month: API, shared GPUs, laptops. Prices and speeds are yours to set."""
    from dataclasses import asdict

    from agspec.fim.sheet import Machine, Prices, sheet

    use = _use(measured, hours)
    rows = sheet(
        team, use, Prices(input_million, output_million, gpu_hour=gpu_hour, kwh=kwh),
        Machine(gpu_prefill, gpu_decode), Machine(laptop_prefill, laptop_decode, laptop_watts),
    )  # fmt: skip
    if as_json:
        told = {"team": team, "use": asdict(use), "rows": [asdict(row) for row in rows]}
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2))
        return
    click.echo(
        f"{team} people, {use.hours_a_day:g} h of typing a day: {use.requests_a_minute:.1f} requests a minute each,"
        f" {use.prompt_tokens:.0f} tokens in ({use.fresh_tokens:.0f} of them new), {use.completion_tokens:.0f} out"
    )
    for row in rows:
        click.echo(f"{row.name:11} {row.money:12,.2f} a month  {row.told}")


def _use(measured: Path | None, hours: float) -> Any:
    """What a person asks for, as measured: the fastest run's, drafts on."""
    from agspec.fim.sheet import Use

    if measured is None:
        return Use(30.0, 1500.0, 120.0, 9.0, hours_a_day=hours)
    try:
        row = next(row for row in orjson.loads(measured.read_bytes())["rows"] if row["drafts"])
        return Use(
            requests_a_minute=60 * row["num_asked"] / row["editors"] / row["seconds"], hours_a_day=hours,
            prompt_tokens=row["prompt"]["p50"], fresh_tokens=row["fresh"]["p50"],
            completion_tokens=row["tokens_a_completion"],
        )  # fmt: skip
    except OSError as error:
        raise InputError(f"{measured}: want what benchmarks.fim wrote, got: {error.strerror}") from error
    except (orjson.JSONDecodeError, StopIteration, KeyError, TypeError) as error:
        raise InputError(f"{measured}: want what benchmarks.fim wrote, got: {error!r:.80}") from error


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"{path}: want a text file, got: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: want UTF-8, got byte {error.object[error.start]:#04x} at {error.start}") from error


def _told(prompt: FimPrompt, source: str, confidence: str) -> dict[str, Any]:
    return {
        "family": prompt.family, "order": prompt.order,
        "pieces": [{"kind": "marker" if piece.marker else "text", "text": piece.text, "ids": piece.ids}
                   for piece in prompt.pieces],
        "bos": prompt.bos, "stops": prompt.stops, "stop_ids": prompt.stop_ids, "source": source,
        "confidence": confidence,
    }  # fmt: skip


def _show(prompt: FimPrompt, source: str, confidence: str) -> None:
    click.echo(f"{prompt.family}, {prompt.order} ({confidence}: {source})")
    if prompt.bos:
        click.echo(f"bos     {list(prompt.bos)}")
    for piece in prompt.pieces:
        shown = piece.text if piece.marker else repr(piece.text if len(piece.text) < 90 else f"{piece.text[:87]}...")
        ids = "" if piece.ids is None else f"  {list(piece.ids[:8])}{'...' if len(piece.ids) > 8 else ''}"
        click.echo(f"{'marker' if piece.marker else 'text':7} {shown}{ids}")
    click.echo(f"stops   {' '.join(prompt.stops)}")
