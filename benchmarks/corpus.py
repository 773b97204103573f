"""Frozen corpora at size: ``python -m benchmarks.corpus [TOKENIZER] [--tokens 1000000,10000000] [--text DIR]``.

Builds a corpus of each size from Python sources (this environment's packages, mixed), and measures in a process of its
own how long opening takes, what looking up makes resident, and look-ups of contexts from text that was held out and
from the corpus itself. The files were just written, so the page cache is warm. Match lengths are checked, so that a
fast wrong answer fails. Without TOKENIZER the embedded one is used. The result goes to benchmarks/results/ too.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from agspec.corpus import HEADS, ORDER, TOKENS, mapped, open_corpus
from agspec.draft.frozen import sorted_order
from agspec.draft.kernels import MAX_CONTEXT
from agspec.draft.suffix_array import SEPARATOR, search
from agspec.replay.corpus import build_corpus, verify_corpus
from agspec.replay.environment import environment
from agspec.tokens import Tokenizer, Tokens, load_tokenizer
from benchmarks.lookup import clock, spread

RESULTS = Path(__file__).parent / "results"
LIMIT, FLOOR = 48, 0.02
LOOKUPS = 10_000
CHECKED = 12
HELD_OUT = 24
"""One file in so many is held out."""


def mixed(root: Path) -> list[Path]:
    """Python files below ``root``, in an order that puts no neighbours together."""
    found = sorted(root.rglob("*.py"), key=lambda path: zlib.crc32(str(path.relative_to(root)).encode()))
    return [path for path in found if path.stat().st_size > 200]


def chosen(files: list[Path], tokenizer: Tokenizer, num_tokens: int) -> list[Path]:
    """The first of ``files`` that hold about ``num_tokens``."""
    sample = files[:: max(1, len(files) // 300)]
    texts = [path.read_text("utf-8", "replace") for path in sample]
    each = sum(map(len, tokenizer.encode_all(texts))) / sum(path.stat().st_size for path in sample)
    sizes = np.cumsum([path.stat().st_size * each for path in files])
    if sizes[-1] < num_tokens:
        raise SystemExit(f"want text of {num_tokens:,} tokens, found about {int(sizes[-1]):,}: give --text")
    return files[: int(np.searchsorted(sizes, num_tokens)) + 1]


def build(files: list[Path], target: Path, tokenizer: Tokenizer) -> dict[str, Any]:
    """Build and verify; figures."""
    _sort_us(np.tile(np.arange(-1, 50, dtype=np.int32), 40))  # compiles
    started = time.perf_counter()
    merging = 0.0

    def progress(done: int, total: int, what: str) -> None:
        nonlocal merging
        merging = merging or (time.perf_counter() if what == "merging" else 0.0)

    info = build_corpus(files, target, tokenizer=tokenizer, kind="text", progress=progress)
    ended = time.perf_counter()
    sort_us = _sort_us(mapped(target / TOKENS)[:4_000_000].copy())
    verifying = time.perf_counter()
    verify_corpus(target)
    return {
        "num_tokens": info.num_tokens,
        "num_documents": info.num_documents,
        "bytes_per_token": round(info.num_bytes / info.num_tokens, 3),
        "build_us_per_token": round((ended - started) / info.num_tokens * 1e6, 3),
        "sort_us_per_token": round(sort_us, 3),
        "merge_us_per_token": round((ended - merging) / info.num_tokens * 1e6, 3),
        "build_peak_resident_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
        "verify_s": round(time.perf_counter() - verifying, 2),
    }


def _sort_us(tokens: Tokens) -> float:
    started = time.perf_counter()
    sorted_order(tokens)
    return (time.perf_counter() - started) / tokens.size * 1e6


def resident() -> dict[str, float]:
    """Memory resident now: the process's own, and of mapped files, MB."""
    status = Path("/proc/self/status").read_text()
    found = dict(re.findall(r"^(Rss\w+):\s+(\d+) kB", status, re.MULTILINE))
    return {"own": int(found["RssAnon"]) / 1000, "files": int(found["RssFile"]) / 1000}


def contexts(tokens: Tokens, seed: int) -> list[Tokens]:
    """LOOKUPS contexts of MAX_CONTEXT tokens, each within a document."""
    ends = np.random.default_rng(seed).integers(MAX_CONTEXT, tokens.size - 1, size=4 * LOOKUPS)
    found = (tokens[end - MAX_CONTEXT : end].copy() for end in ends.tolist() if tokens[end] != SEPARATOR)
    return [context for context in found if context.min() >= 0][:LOOKUPS]


def longest_match(tokens: Tokens, context: Tokens) -> int:
    """Brute force: tokens of the longest ending of ``context`` that something follows."""
    places = np.flatnonzero(tokens[:-1] == context[-1])
    places, n = places[tokens[places + 1] != SEPARATOR], 0
    while places.size:
        n += 1
        if n == context.size:
            break
        places = places[tokens[places - n] == context[-1 - n]]
    return n


def look_up(target: Path, tokenizer: Tokenizer, held_out: Tokens) -> dict[str, Any]:
    """Figures of this process: opening, look-ups, memory."""
    tokenizer.fingerprint  # noqa: B018
    asked = {"held_out": contexts(held_out, 1), "in_corpus": contexts(mapped(target / TOKENS), 2)}
    _ = open_corpus(target, tokenizer).draft(held_out[:MAX_CONTEXT].copy(), limit=LIMIT, floor=FLOOR)
    before = resident()
    times, (store,) = clock([lambda: open_corpus(target, tokenizer)])
    figures: dict[str, Any] = {"open_ms": round(times[0] / 1000, 2)}
    for name, found in asked.items():
        calls: list[Callable[[], Any]] = [lambda c=c: store.draft(c, limit=LIMIT, floor=FLOOR) for c in found]  # type: ignore[misc]
        times, drafts = clock(calls)
        figures[f"draft_us_{name}"] = spread(times)
        lengths = [0 if draft is None else draft.match_length for draft in drafts]
        figures[f"mean_match_length_{name}"] = round(float(np.mean(lengths)), 2)
        figures[f"mean_draft_length_{name}"] = round(
            float(np.mean([0 if draft is None else draft.tokens.size for draft in drafts])), 2
        )
        if name == "in_corpus" and min(lengths) < MAX_CONTEXT:
            raise SystemExit("a context taken from the corpus was not found whole")
        grown = {key: value - before[key] for key, value in resident().items()}
        figures[f"resident_mb_after_{name}"] = {key: round(value, 1) for key, value in grown.items()}
    arrays = [mapped(target / name) for name in (TOKENS, ORDER, HEADS)]
    times, found = clock([lambda c=c: search(*arrays, c) for c in asked["held_out"]])  # type: ignore[misc]
    figures["search_us_held_out"] = spread(times)
    for context, (length, _) in list(zip(asked["held_out"], found, strict=True))[:CHECKED]:
        if length != longest_match(arrays[0], context):
            raise SystemExit("a match is not the longest")
    return figures


def measure(sizes: list[int], name: str, text: Path) -> dict[str, Any]:
    """Figures by size."""
    tokenizer = load_tokenizer(name)
    files = mixed(text)
    held, known = files[::HELD_OUT], [path for i, path in enumerate(files) if i % HELD_OUT]
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        texts = [path.read_text("utf-8", "replace") for path in held[:400]]
        np.save(work / "held.npy", np.concatenate(tokenizer.encode_all(texts)))
        for size in sizes:
            print(f"building {size:,} tokens ...", file=sys.stderr)
            target = work / f"corpus-{size}"
            made = build(chosen(known, tokenizer, size), target, tokenizer)
            command = [sys.executable, "-m", "benchmarks.corpus", name, "--look-up", str(target)]
            done = subprocess.run([*command, str(work / "held.npy")], capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stderr)
            figures[str(size)] = {**made, **json.loads(done.stdout)}
            print(json.dumps(figures[str(size)], indent=1), file=sys.stderr)
    return figures


def write_result(kind: str, result: dict[str, Any]) -> Path:
    """Keep a result under benchmarks/results, named by date and machine."""
    machine = re.sub(r"[^a-z0-9]+", "-", result["environment"]["machine"].lower()).strip("-")
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{result['environment']['date']}-{machine}-{kind}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus", description=__doc__)
    parser.add_argument("tokenizer", nargs="?", default="embedded")
    parser.add_argument("--tokens", default="1000000,10000000", help="sizes, joined by commas")
    parser.add_argument("--text", type=Path, default=Path(sysconfig.get_path("purelib")), help="where *.py files are")
    parser.add_argument("--json", action="store_true", help="data as JSON")
    parser.add_argument("--look-up", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.look_up:
        target, held = options.look_up
        print(json.dumps(look_up(target, load_tokenizer(options.tokenizer), np.load(held))))
        return
    figures = measure([int(size) for size in options.tokens.split(",")], options.tokenizer, options.text)
    told = {"tokenizer": Path(options.tokenizer).name, "limit": LIMIT, "floor": FLOOR, "lookups": LOOKUPS}
    result = {"kind": "corpus", "settings": told, "environment": environment(), "figures": figures}
    print(f"kept in {write_result('corpus', result)}", file=sys.stderr)
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for name in next(iter(figures.values())):
        print(f"{name:30}", *(f"{json.dumps(found[name]):>28}" for found in figures.values()))


if __name__ == "__main__":
    main()
