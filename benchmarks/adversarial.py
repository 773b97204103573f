"""Never slower where there is nothing to gain: ``python -m benchmarks.adversarial [--pairs 20] [--batch 1,4,16]``.

Three kinds of sessions on the real engine, forced along made-up outputs: ``random`` (random words in and others out),
``unrepeated`` (an output in which nothing recurs, nor anything of the prompt), ``misleading`` (prompts full of places
that begin as the output does and go on differently). agspec against the same engine without drafts, in interleaved
pairs: median ratio of decode speed and its 95% interval. ``async``, an engine without speculation, runs in its own
process before and after, so its ratio also holds the machine's drift.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from agspec.engine.bench import Job, bench
from agspec.engine.wrong import ordinary_ids
from agspec.replay.environment import environment
from agspec.replay.plan import PlannedCall
from agspec.settings import Settings
from agspec.tokens import Tokens, as_tokens, load_tokenizer
from benchmarks.corpus import write_result

KINDS = ("random", "unrepeated", "misleading")
LEAST = 0.98


def session(kind: str, name: str, words: Tokens, length: int, prompt_length: int, end: int, seed: int) -> PlannedCall:
    """One call of ``length`` tokens out of ``words`` (token ids to choose from, int32 [n])."""
    rng = np.random.default_rng(seed)
    output = rng.choice(words, length - 1, replace=kind == "random")
    prompt = rng.choice(words, prompt_length)
    if kind == "misleading":
        for _ in range(prompt_length // 12):
            at, place = int(rng.integers(0, prompt_length - 8)), int(rng.integers(0, length - 4))
            prompt[at : at + 3] = output[place : place + 3]
    if kind == "unrepeated":
        prompt = np.setdiff1d(words, output)[:prompt_length]
    return PlannedCall(name, "coder", "generic", as_tokens(prompt), as_tokens([*output, end]), ())


def run(batch: int, asked: argparse.Namespace) -> dict[str, Any]:
    """The row of one batch size: every kind in every run."""
    tokenizer = load_tokenizer("embedded")
    ids = ordinary_ids(tokenizer)
    words = as_tokens(ids[(ids >= 1000) & (ids < 9000)])
    sessions = [
        [session(kind, f"{kind}-{i}", words, asked.tokens, asked.prompt, tokenizer.end_id, seed=100 * k + i)]
        for k, kind in enumerate(KINDS)
        for i in range(batch)
    ]
    job = Job(
        model="embedded", methods=tuple(asked.methods.split(",")), batches=(batch,), repeats=asked.pairs,
        dtype="bfloat16", max_model_len=2048,
        settings=Settings(cost=Path(asked.cost), max_draft=24),
    )  # fmt: skip
    rows = bench(job, [("adversarial", sessions)])["rows"]
    row = next(row for row in rows if row["method"] == "agspec")
    return {
        "batch": batch, "pairs": row["repeats"], "over_none": row["ratio_to_none"], "over_async": row["ratio_to_async"],
        "num_tokens": row["num_tokens"], "num_draft_tokens": row["num_draft_tokens"],
        "num_accepted_tokens": row["num_accepted_tokens"],
    }  # fmt: skip


def main() -> None:
    """Run, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adversarial", description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--batch", default="1,4,16")
    parser.add_argument("--tokens", type=int, default=30, help="of each output")
    parser.add_argument("--prompt", type=int, default=600, help="tokens of each prompt")
    parser.add_argument("--methods", default="async,none,agspec")
    parser.add_argument("--cost", default="cpu-smollm2-135m", help="cost profile: file or shipped name")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = [run(int(batch), asked) for batch in asked.batch.split(",")]
    result = {"kind": "adversarial", "environment": environment(), "rows": rows}
    print(f"kept in {write_result('adversarial', result)}", file=sys.stderr)
    if asked.json:
        print(json.dumps(result, indent=1))
        return
    for row in rows:
        for base in ("none", "async"):
            ratio = row[f"over_{base}"]
            if ratio is not None:
                low, high = ratio["interval"]
                verdict = "never slower" if low >= LEAST else "SLOWER" if high < LEAST else "not decided"
                counts = f"{row['num_draft_tokens']} drafted, {row['num_accepted_tokens']} accepted"
                print(
                    f"batch {row['batch']:2}: {ratio['median']:.3f} [{low:.3f}, {high:.3f}] x {base}: {verdict}"
                    f" ({counts} of {row['num_tokens']} tokens, {row['pairs']} pairs)"
                )


if __name__ == "__main__":
    main()
