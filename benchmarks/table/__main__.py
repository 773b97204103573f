"""``python -m benchmarks.table [TRACES] [--json]``: see benchmarks.table."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from agspec.errors import AgspecError, MissingExtraError
from agspec.replay.environment import environment
from agspec.replay.trace import write_whole
from agspec.settings import Settings
from agspec.tokens import load_tokenizer
from benchmarks.table import targets
from benchmarks.table.ablations import VIEWS
from benchmarks.table.families import names
from benchmarks.table.jobs import Place, family, run_all
from benchmarks.table.score import compare, rows
from benchmarks.table.show import show
from benchmarks.table.tables import METHODS, RATIOS, Results, jobs


def measure(place: Place, families: list[str], views: list[str], *, ablated: bool, workers: int) -> dict[str, Any]:
    """The whole result, ready for JSON."""
    loaded = [family(name, place) for name in families]
    results = Results(loaded)
    todo = jobs(families, views, ablated=ablated)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as progress:  # fmt: skip
        bar = progress.add_task("replays", total=len(todo))
        for job, counts in run_all(todo, place, workers=workers):
            results.counts[job] = counts
            progress.update(bar, advance=1, description=f"{job.family} {job.method}")
    measured = {name: results.view(VIEWS[name]) for name in views}
    compared = {
        name: [compare(settings, method, over) for method, over in targets.COMPARISONS]
        for name, settings in measured.items()
        if any(setting.in_mean for setting in settings)
    }
    return {
        "kind": "table",
        "environment": environment(),
        "settings": {
            "tokenizer_fingerprint": load_tokenizer(place.tokenizer).fingerprint,
            "cost_ratios": RATIOS,
            "agspec": Settings().model_dump(mode="json"),
        },
        "families": [
            {
                "family": one.name,
                "num_sessions": len(one.sessions),
                "num_calls": len(one.calls),
                "num_tokens": one.output_tokens,
                "in_mean": one.in_mean,
            }
            for one in loaded
        ],
        "views": {name: {"title": VIEWS[name].title, "rows": rows(measured[name], METHODS)} for name in views},
        "comparisons": compared,
        "ablations": results.ablations() if ablated else [],
        "chosen": [
            {
                "family": name,
                "method": method,
                "ratio": ratio,
                "values": [results.chosen[name, method, ratio, 0], values],
            }
            for (name, method, ratio, half), values in sorted(results.chosen.items())
            if half == 1
        ],
        "targets": targets.reached(compared),
        "not_had": targets.NOT_HAD,
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table", description="agspec against other drafts")
    parser.add_argument("traces", type=Path, nargs="?", default=Path("../shared/traces"), help="recorded sessions")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json; default: Qwen2's, beside the traces")
    parser.add_argument("--families", default=",".join(names()), help="comma between them")
    parser.add_argument("--views", default=",".join(VIEWS), help=f"of {', '.join(VIEWS)}")
    parser.add_argument("--no-ablations", action="store_true")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--cache", type=Path, default=Path("out/table-cache"), help="where finished replays are kept")
    parser.add_argument(
        "--out", type=Path, help="result file; default: benchmarks/results/table-<date>.json when whole"
    )
    parser.add_argument("--json", action="store_true", help="data as JSON on stdout")
    options = parser.parse_args()
    families, views = options.families.split(","), options.views.split(",")
    for given, known in ((families, list(names())), (views, list(VIEWS))):
        if not set(given) <= set(known):
            parser.error(f"want some of {', '.join(known)}, got {', '.join(given)}")
    tokenizer = options.tokenizer or options.traces.parent / "tokenizers" / "qwen2.tokenizer.json"
    for path in (options.traces, tokenizer):
        if not path.exists():
            raise SystemExit(
                f"{path}: not there; make table TRACES=<folder of recorded sessions laid out as its INDEX.md says>"
            )
    try:
        if find_spec("arctic_inference") is None:
            raise MissingExtraError("arctic-inference", "bench")
        place = Place(options.traces.resolve(), tokenizer.resolve(), options.cache.resolve())
        result = measure(place, families, views, ablated=not options.no_ablations, workers=options.workers)
    except AgspecError as error:
        raise SystemExit(str(error)) from error
    whole = families == list(names()) and views == list(VIEWS) and not options.no_ablations
    out = options.out or (Path(f"benchmarks/results/table-{datetime.date.today()}.json") if whole else None)
    if out is not None:
        write_whole(out, json.dumps(result, indent=1).encode() + b"\n")
        print(f"result: {out}", file=sys.stderr)
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        show(result)


if __name__ == "__main__":
    main()
