"""What agspec costs a step: ``python -m benchmarks.propose [TOKENIZER] [--tokens 10000000] [--text DIR] [--json]``.

Sessions with prompts of 20,000 tokens (Python sources) write outputs that copy half of the time, with changes, and else
write what was never seen, beside a frozen corpus of 10M tokens; one call of the drafter for all rows of a step is
timed, for batches of 1 and 16. Before each, the thread that takes text in has ended its step: an engine's forward pass,
which lies between two calls and is not run here, leaves it milliseconds. Accepted tokens are checked, so that a drafter
that drafts nothing fails. Prints medians and 99th percentiles in microseconds; the result goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

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


def sessions(text: Tokens, number: int, end: int, seed: int) -> list[PlannedCall]:
    """``number`` sessions of one call each; outputs are copies of the prompt with a token changed in ten, and new text.

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
            output += piece.tolist()
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
    """A row for each batch size."""
    rows = []
    for batch in BATCHES:
        settings = Settings(cost_ratio=RATIO, corpus=corpus, strict=True)
        calls = sessions(text, 2 * max(4, batch), tokenizer.end_id, seed=batch)
        replay(Timed(settings, tokenizer), calls[:batch], max_draft=48, batch=batch)
        method = Timed(settings, tokenizer)
        tally = replay(method, calls, max_draft=48, batch=batch)
        if tally.mean_acceptance_length < 1.3:
            raise SystemExit(f"agspec accepts {tally.mean_acceptance_length:.2f} tokens a step: it does not draft")
        spread = {f"p{q}": round(float(np.percentile(method.times, q)), 1) for q in (50, 90, 99)}
        rows.append(
            {
                "method": "agspec", "batch": batch, "num_steps": len(method.times),
                "mean_acceptance_length": round(tally.mean_acceptance_length, 3),
                "propose_us": spread,
            }
        )  # fmt: skip
    return rows


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
            f"{row['method']:8} batch {row['batch']:3}  p50 {us['p50']:7.1f}  p90 {us['p90']:7.1f}"
            f"  p99 {us['p99']:7.1f}  ({row['num_steps']} steps, {row['mean_acceptance_length']} tokens a step)"
        )


if __name__ == "__main__":
    main()
