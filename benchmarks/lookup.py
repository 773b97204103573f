"""Building, looking up and drafting in a large store: ``python -m benchmarks.lookup [--tokens N] [--json]``.

Text-like tokens: the standard library's words, hashed to ids, a document a file. Medians over rounds; every timed
look-up is also checked, so that a fast wrong answer fails.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import sysconfig
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from agspec.draft import blend
from agspec.draft.automaton import Automaton
from agspec.draft.kernels import MAX_CONTEXT
from agspec.draft.lookup import SamLookup, Slot
from agspec.replay.environment import environment
from agspec.tokens import Tokens, as_tokens

VOCABULARY = 50_000
HELD_OUT = 200_000
"""Tokens after those of the store: contexts to look up, and text to take in."""
CHECKED = 12


def documents() -> Iterator[Tokens]:
    """The standard library's files as token ids, mixed: neighbours in a folder are alike."""
    root = Path(sysconfig.get_path("stdlib"))
    skipped = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3"}
    for path in sorted(root.rglob("*.py"), key=lambda path: zlib.crc32(str(path.relative_to(root)).encode())):
        if not skipped & set(path.relative_to(root).parts):
            words = re.findall(r"\w+|\s+|[^\w\s]", path.read_text("utf-8", "replace"))
            yield as_tokens([zlib.crc32(word.encode("utf-8", "replace")) % VOCABULARY for word in words])


def load(num_tokens: int) -> tuple[list[Tokens], Tokens]:
    """``num_tokens`` as documents, and the text that comes after them; the text starts over when it runs out."""
    held: list[Tokens] = []
    left = num_tokens + HELD_OUT
    round_ = 0
    while left > 0:
        for document in documents():
            part = ((document + 977 * round_) % VOCABULARY)[:left].astype(np.int32)
            held.append(part)
            left -= int(part.size)
            if not left:
                break
        round_ += 1
    whole = np.concatenate(held)
    store, size = [], 0
    for part in held:
        if size < num_tokens and part.size:
            store.append(part[: num_tokens - size])
            size += int(store[-1].size)
    return store, whole[num_tokens:]


def clock(calls: list[Callable[[], Any]]) -> tuple[list[float], list[Any]]:
    """Microseconds of each call, and what it gave."""
    times, found = [], []
    for call in calls:
        started = time.perf_counter_ns()
        result = call()
        times.append((time.perf_counter_ns() - started) / 1000)
        found.append(result)
    return times, found


def spread(times: list[float], *, per: float = 1.0) -> dict[str, float]:
    """Median and 99th percentile."""
    return {"p50": round(median(times) / per, 3), "p99": round(float(np.percentile(times, 99)) / per, 3)}


def longest_match(text: Tokens, context: Tokens) -> int:
    """Brute force over ``text``, where documents end with -1."""
    places, n = np.flatnonzero(text == context[-1]), 0
    while places.size and n < context.size:
        n += 1
        if n < context.size:
            places = places[places >= n]
            places = places[text[places - n] == context[-1 - n]]
    return n


def build(store: list[Tokens], capacity: int) -> tuple[Automaton, float]:
    """An automaton over ``store``, and the seconds it took."""
    automaton = Automaton(capacity=capacity)
    started = time.perf_counter()
    for document in store:
        if automaton.extend(automaton.open(), document) != document.size:
            raise SystemExit("the automaton is full: STATES_PER_TOKEN or EDGES_PER_TOKEN is too small for this text")
    return automaton, time.perf_counter() - started


def measure(num_tokens: int, rounds: int) -> dict[str, Any]:
    """All figures."""
    store, held_out = load(num_tokens)
    build(store[:3], 200_000)  # compiles
    seconds = []
    for _ in range(rounds):
        automaton, took = build(store, num_tokens + HELD_OUT)
        seconds.append(took)
    exact = build(store, num_tokens)[0]
    figures: dict[str, Any] = {
        "num_tokens": len(automaton),
        "num_documents": len(store),
        "build_us_per_token": round(median(seconds) / num_tokens * 1e6, 3),
        "bytes_per_token": round(exact.memory_bytes / num_tokens, 1),
        "reserved_bytes_per_token": round(exact.reserved_bytes / num_tokens, 1),
        "states_per_token": round(exact.num_states / num_tokens, 3),
        "edges_per_token": round(exact.num_edges / num_tokens, 3),
    }
    del exact
    rng = np.random.default_rng(0)
    known = [document for document in store if document.size > 2 * MAX_CONTEXT]
    inside = []
    for which in rng.integers(len(known), size=3000):
        end = int(rng.integers(MAX_CONTEXT, known[which].size))
        inside.append(known[which][end - MAX_CONTEXT : end].copy())
    ends = rng.integers(MAX_CONTEXT, held_out.size, size=6000)
    outside = [held_out[end - MAX_CONTEXT : end].copy() for end in ends]
    contexts = inside + outside
    automaton.match(contexts[0])
    times, matches = clock([lambda c=c: automaton.match(c) for c in contexts])
    if any(found.length != MAX_CONTEXT for found in matches[: len(inside)]):
        raise SystemExit("a context taken from the store was not found whole")
    text = np.concatenate([part for document in store for part in (document, as_tokens([-1]))])
    for context, found in list(zip(outside, matches[len(inside) :], strict=True))[:CHECKED]:
        if found.length != longest_match(text, context):
            raise SystemExit("a match is not the longest")
    figures["match_us"] = spread(times)
    figures["match_us_in_store"] = spread(times[: len(inside)])
    figures["match_us_held_out"] = spread(times[len(inside) :])
    figures["mean_match_length_held_out"] = round(float(np.mean([m.length for m in matches[len(inside) :]])), 2)

    slot = Slot.of(48)

    def drafts(context: Tokens) -> Any:
        return blend.draft(automaton.arrays, context[-MAX_CONTEXT:], 0.02, 48, *slot)[0]

    drafts(contexts[0])
    times, found = clock([lambda c=c: drafts(c) for c in contexts])
    if not all(found[: len(inside)]):
        raise SystemExit("a context taken from the store has no continuation")
    figures["draft_us"] = spread(times)
    figures["draft_us_held_out"] = spread(times[len(inside) :])
    figures["mean_draft_length"] = round(float(np.mean(found)), 2)
    lookup = SamLookup(512 << 20)
    for document in store:
        lookup.extend(lookup.open(), document)
    times, _ = clock([lambda c=c: lookup.draft(c, limit=48, floor=0.02) for c in contexts])
    figures["draft_us_in_segments"] = {**spread(times), "segments": len(lookup._segments)}

    document = automaton.open()
    chunks = [held_out[i : i + 1024].copy() for i in range(0, HELD_OUT // 2 - 1024, 1024)]
    times, went = clock([lambda c=c: automaton.extend(document, c) for c in chunks])
    figures["intake_1024_ms"] = spread(times, per=1000)
    few = [held_out[i : i + 4].copy() for i in range(HELD_OUT // 2, HELD_OUT - 20_000, 4)]
    times, more = clock([lambda c=c: automaton.extend(document, c) for c in few])
    figures["extend_4_us"] = spread(times)
    if sum(went) + sum(more) != 1024 * len(chunks) + 4 * len(few):
        raise SystemExit("text was not taken in whole")
    automaton.check()
    return figures


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lookup", description=__doc__)
    parser.add_argument("--tokens", type=int, default=1_000_000, help="tokens in the store")
    parser.add_argument("--rounds", type=int, default=3, help="builds, of which the median counts")
    parser.add_argument("--json", action="store_true", help="data as JSON")
    options = parser.parse_args()
    print(f"building {options.rounds + 2} stores of {options.tokens:,} tokens ...", file=sys.stderr)
    result = {"kind": "lookup", "environment": environment(), "figures": measure(options.tokens, options.rounds)}
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for name, value in result["figures"].items():
        shown = "  ".join(f"{k} {v:,}" for k, v in value.items()) if isinstance(value, dict) else f"{value:,}"
        print(f"{name:28} {shown}")
    print("  ".join(f"{name} {value}" for name, value in result["environment"].items()))


if __name__ == "__main__":
    main()
