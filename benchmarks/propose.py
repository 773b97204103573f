"""What agspec costs a step: ``python -m benchmarks.propose [TOKENIZER] [--tokens 10000000] [--text DIR] [--json]``.

Sessions with prompts of 20,000 tokens (Python sources) write outputs that copy half of the time, with changes, and else
write what was never seen, beside a frozen corpus of 10M tokens; one call of the drafter for all rows of a step is
timed, for batches of 1 and 16. Before each, the thread that takes text in has ended its step: an engine's forward pass,
which lies between two calls and is not run here, leaves it milliseconds. Accepted tokens are checked, so that a drafter
that drafts nothing fails; the same again with outputs that are new throughout, where drafting falls to zero. Prints
medians and 99th percentiles in microseconds, and what they are of a step of the embedded model here and of a 7B model
on an H100 (estimated, see agspec/costs); the result goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from agspec.costfile import read_cost
from agspec.replay.corpus import build_corpus
from agspec.replay.environment import environment
from agspec.replay.methods import Agspec, Step
from agspec.replay.plan import PlannedCall
from agspec.replay.simulate import replay
from agspec.settings import Settings
from agspec.tokens import Tokenizer, Tokens, as_tokens, load_tokenizer
from benchmarks.corpus import HELD_OUT, chosen, mixed, write_result

PROMPT, OUTPUT = 20_000, 1_500
BATCHES = (1, 16)
RATIO = 0.03
STEPS = ("cpu-smollm2-135m", "h100-7b")
"""Cost profiles of whose steps a call's share is told."""


def sessions(text: Tokens, number: int, end: int, seed: int, *, copies: bool) -> list[PlannedCall]:
    """``number`` sessions of one call each; outputs are new text and, with ``copies``, copies with a token in ten new.

    ``text``: held out of the corpus; int32 [n]. ``end``: the token that ends a turn.
    """
    rng = np.random.default_rng(seed)
    calls = []
    for i in range(number):
        at = int(rng.integers(0, text.size - PROMPT - OUTPUT))
        prompt = text[at : at + PROMPT].copy()
        output: list[int] = []
        while len(output) < OUTPUT:
            place, length = int(rng.integers(0, PROMPT - 100)), int(rng.integers(10, 100))
            piece = prompt[place : place + length].copy()
            changed = rng.random(length) < 0.1
            piece[changed] = text[rng.integers(0, text.size, int(changed.sum()))]
            output += piece.tolist() if copies else []
            place = int(rng.integers(0, text.size - 60))
            output += rng.permutation(text[place : place + 60]).tolist()
        tape = as_tokens([*output[: OUTPUT - 1], end])
        calls.append(PlannedCall(f"s{i}", "coder", "generic", prompt, tape, (), None))
    return calls


class Timed(Agspec):
    """Times each call of the drafter, ``times`` in microseconds."""

    def __init__(self, settings: Settings, tokenizer: Tokenizer) -> None:
        super().__init__(settings, tokenizer)
        self.times: list[float] = []

    def propose(self, steps: Sequence[Step]) -> list[Tokens]:
        """See ``Method``."""
        self.drafter.intake.wait()
        started = time.perf_counter()
        drafts = super().propose(steps)
        self.times.append((time.perf_counter() - started) * 1e6)
        return drafts


def measure(text: Tokens, tokenizer: Tokenizer, corpus: Path) -> list[dict[str, Any]]:
    """A row for each kind of output and batch size."""
    rows = []
    for copies, batch in product((True, False), BATCHES):
        settings = Settings(cost_ratio=RATIO, corpus=corpus, strict=True)
        calls = sessions(text, 2 * max(4, batch), tokenizer.end_id, seed=batch, copies=copies)
        replay(Timed(settings, tokenizer), calls[:batch], max_draft=48, batch=batch)
        method = Timed(settings, tokenizer)
        tally = replay(method, calls, max_draft=48, batch=batch)
        if copies != (tally.mean_acceptance_length >= 1.3):
            raise SystemExit(f"{tally.mean_acceptance_length:.2f} tokens a step, copies {copies}: not what was set up")
        spread = {f"p{q}": round(float(np.percentile(method.times, q)), 1) for q in (50, 90, 99)}
        rows.append(
            {
                "output": "half copied" if copies else "all new", "batch": batch, "num_steps": len(method.times),
                "mean_acceptance_length": round(tally.mean_acceptance_length, 3),
                "drafted_a_step": round(tally.num_draft_tokens / tally.num_steps, 3),
                "propose_us": spread,
                "share_of_step": {
                    name: round(spread["p50"] / 1000 / read_cost(name).step(batch, 0), 4) for name in STEPS
                },
            }
        )  # fmt: skip
    return rows


def shares(row: dict[str, Any]) -> str:
    """Of a step, in words."""
    return ", ".join(f"{share:.2%} of a step of {name}" for name, share in row["share_of_step"].items())


def main() -> None:
    """Build, measure, print, write."""
    parser = argparse.ArgumentParser(description="What agspec costs a step.")
    parser.add_argument("tokenizer", nargs="?", default="embedded")
    parser.add_argument("--tokens", type=int, default=10_000_000)
    parser.add_argument("--text", type=Path, default=Path(sysconfig.get_path("purelib")))
    parser.add_argument("--json", action="store_true", help="only the result, as JSON, on stdout")
    asked = parser.parse_args()
    tokenizer = load_tokenizer(asked.tokenizer)
    files = mixed(asked.text)
    held_out = files[::HELD_OUT]
    kept = chosen([path for i, path in enumerate(files) if i % HELD_OUT], tokenizer, asked.tokens)
    text = np.concatenate(tokenizer.encode_all([path.read_text("utf-8", "replace") for path in held_out[:400]]))
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        info = build_corpus(kept, corpus, tokenizer=tokenizer, kind="text")
        rows = measure(text, tokenizer, corpus)
    result = {
        "kind": "propose", "corpus_tokens": info.num_tokens, "prompt_tokens": PROMPT, "rows": rows,
        "environment": environment(),
    }  # fmt: skip
    write_result("propose", result)
    if asked.json:
        print(json.dumps(result, indent=1))
        return
    print(f"corpus of {info.num_tokens:,} tokens, prompts of {PROMPT:,}; microseconds of one call for all rows")
    for row in rows:
        us = row["propose_us"]
        print(
            f"{row['output']:11} batch {row['batch']:3}  p50 {us['p50']:7.1f}  p90 {us['p90']:7.1f}"
            f"  p99 {us['p99']:7.1f}  ({row['num_steps']} steps, {row['mean_acceptance_length']} tokens a step,"
            f" {row['drafted_a_step']} drafted; p50 is {shares(row)})"
        )


if __name__ == "__main__":
    main()
