"""Whether an irrelevant corpus hurts: ``python -m benchmarks.distractors TRACE [TOKENIZER] [--text DIR]``.

TRACE: sessions of one kind (``agspec import``). Every other session makes a corpus, the rest are replayed: without a
corpus, with that one, and with it merged with 4 distractor corpora of its size, cut from unrelated source text (this
environment's packages). Teacher-forced counts: repeated, they are the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from agspec.corpus import read_info
from agspec.replay.corpus import build_corpus, corpus_told, merge_corpora
from agspec.replay.costs import NamedCost
from agspec.replay.environment import environment
from agspec.replay.simulate import simulate
from agspec.replay.trace import Trace, read_trace, write_trace
from agspec.settings import Settings
from agspec.tokens import Tokenizer, load_tokenizer
from benchmarks.corpus import mixed, write_result

DISTRACTORS = 4
COST_RATIO = 0.065
MOST_LOST = 0.03
"""Share of the mean acceptance length that the distractors may cost."""


def distractors(files: list[Path], work: Path, tokenizer: Tokenizer, num_tokens: int) -> list[Path]:
    """DISTRACTORS text files of ``num_tokens`` each."""
    found = []
    left = iter(files)
    for number in range(DISTRACTORS):
        path = work / f"text-{number}.txt"
        texts: list[str] = []
        size = 0
        while size < num_tokens:
            texts.append(next(left).read_text("utf-8", "replace"))
            size += int(tokenizer.encode(texts[-1]).size)
        kept = tokenizer.decode(tokenizer.encode("\n".join(texts))[:num_tokens])
        path.write_text(kept, "utf-8")
        found.append(path)
    return found


def measure(trace: Trace, tokenizer: Tokenizer, text: Path) -> dict[str, Any]:
    """One row a corpus."""
    sessions = list(trace.sessions)
    asked = set(sessions[1::2])
    replayed = trace.model_copy(update={"calls": tuple(call for call in trace.calls if call.session in asked)})
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_trace(trace, work / "trace.jsonl.gz")
        relevant, every = work / "relevant", work / "every"
        build_corpus([work / "trace.jsonl.gz"], relevant, tokenizer=tokenizer, exclude=asked)
        size = read_info(relevant).num_tokens
        parts = []
        for number, path in enumerate(distractors(mixed(text), work, tokenizer, size)):
            parts.append(work / f"distractor-{number}")
            build_corpus([path], parts[-1], tokenizer=tokenizer, kind="text")
        merge_corpora([relevant, *parts], every)
        for name, corpus in (("none", None), ("relevant", relevant), ("relevant + 4 distractors", every)):
            print(f"replaying with corpus: {name}", file=sys.stderr)
            result = simulate(
                [replayed],
                tokenizer=tokenizer,
                tool_wire="json",
                methods=["agspec"],
                costs=[NamedCost.of_ratio(COST_RATIO)],
                settings=Settings(corpus=corpus),
            )
            told = corpus_told(corpus, asked)
            if told is not None and told["overlap"]:
                raise SystemExit(f"evaluated sessions are in the corpus: {told['overlap']}")
            (row,) = result["rows"]
            rows.append(
                {
                    "corpus": name,
                    "corpus_tokens": 0 if told is None else told["num_tokens"],
                    "mean_acceptance_length": row["mean_acceptance_length"],
                    "num_draft_tokens": row["num_draft_tokens"],
                    "num_accepted_tokens": row["num_accepted_tokens"],
                    "of_corpus": row["by_source"].get("corpus", {}),
                    "speedup": row["speedup"],
                }
            )
    return {"sessions": sorted(asked), "rows": rows}


def main() -> None:
    """Command line; exits with 1 when the distractors cost more than MOST_LOST."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distractors", description=__doc__)
    parser.add_argument("trace", type=Path)
    parser.add_argument("tokenizer", nargs="?", default="embedded")
    parser.add_argument("--text", type=Path, default=Path(sysconfig.get_path("purelib")), help="where *.py files are")
    parser.add_argument("--json", action="store_true", help="data as JSON")
    options = parser.parse_args()
    found = measure(read_trace(options.trace), load_tokenizer(options.tokenizer), options.text)
    without, relevant, every = (row["mean_acceptance_length"] for row in found["rows"])
    lost = 1 - every / relevant
    told = {"trace": options.trace.name, "tokenizer": Path(options.tokenizer).name, "cost_ratio": COST_RATIO}
    result = {"kind": "distractors", "settings": told, "environment": environment(), **found, "lost": lost}
    print(f"kept in {write_result('distractors', result)}", file=sys.stderr)
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        for row in found["rows"]:
            length, drafted = row["mean_acceptance_length"], row["num_draft_tokens"]
            print(f"{row['corpus']:26} mean acceptance length {length:.4f}  drafted {drafted:,}  {row['speedup']:.3f}")
        print(f"gain of the corpus {relevant / without - 1:+.2%}, lost to distractors {lost:.2%}")
    if lost > MOST_LOST:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
