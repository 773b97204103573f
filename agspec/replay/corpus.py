"""A frozen corpus from the outputs that traces recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agspec.corpus import save_corpus
from agspec.draft.automaton import Automaton
from agspec.errors import InputError
from agspec.replay.plan import Planner
from agspec.replay.render import ToolWire
from agspec.replay.trace import Trace
from agspec.tokens import Tokenizer


def build_corpus(traces: Sequence[Trace], target: Path, tokenizer: Tokenizer, tool_wire: ToolWire) -> dict[str, Any]:
    """Index the recorded outputs of ``traces`` into the new folder ``target``; what corpus.json says of it."""
    if target.exists():
        raise InputError(f"{target}: want a folder to make, found one there")
    planner = Planner(tokenizer, tool_wire)
    tapes = [call.tape for trace in traces for call in planner.calls(trace)]
    num_tokens = sum(int(tape.size) for tape in tapes)
    automaton = Automaton(capacity=2 * max(1, num_tokens))
    for tape in tapes:
        automaton.extend(automaton.open(), tape)
    info = {
        "tokenizer": tokenizer.fingerprint,
        "tool_wire": tool_wire,
        "num_tokens": num_tokens,
        "num_calls": len(tapes),
        "sources": sorted({source for trace in traces for source in trace.sources}),
    }
    save_corpus(automaton, target, info)
    return info
