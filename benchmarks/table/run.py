"""The one place that drives agspec's own replay: agspec over half a family, told by session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from agspec.replay.methods import METHODS
from agspec.replay.plan import PlannedCall
from agspec.replay.simulate import CALL_COUNTS, replay
from agspec.settings import Settings, make_settings
from agspec.tokens import Tokenizer
from benchmarks.table.counts import BySession, add


def train(calls: Sequence[PlannedCall], settings: Settings, tokenizer: Tokenizer) -> Settings:
    """``settings`` as they are after calibration on ``calls``, the training half."""
    return settings


def measure(
    method: str,
    values: dict[str, Any],
    *,
    training: Sequence[PlannedCall],
    calls: Sequence[PlannedCall],
    trained: bool,
    warm: bool,
    tokenizer: Tokenizer,
) -> BySession:
    """Counts of ``calls``, session by session; a warm method replays the training half first and keeps its state."""
    settings = make_settings(values, where="benchmarks/table")
    if trained:
        settings = train(training, settings, tokenizer)
    replayed = [*training, *calls] if warm else list(calls)
    by_call: list[Counter[str]] = []
    replay(METHODS[method](settings, tokenizer), replayed, max_draft=settings.max_draft, by_call=by_call)
    found: BySession = {}
    for call, counts in list(zip(replayed, by_call, strict=True))[len(replayed) - len(calls) :]:
        steps, tokens, drafted, accepted = (counts[key] for key in CALL_COUNTS)
        add(found, call.session, (steps, tokens, drafted, accepted))
    return found
