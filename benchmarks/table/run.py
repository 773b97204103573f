"""The one place that drives agspec's own replay: agspec over half a family, told by session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agspec.replay.calibrate import calibrate
from agspec.replay.methods import METHODS
from agspec.replay.plan import PlannedCall
from agspec.replay.simulate import CALL_COUNTS, replay
from agspec.replay.trace import write_whole
from agspec.settings import LookupName, Settings, make_settings
from agspec.tokens import Tokenizer
from benchmarks.table.counts import BySession, add


def train(calls: Sequence[PlannedCall], settings: Settings, tokenizer: Tokenizer, caps: Path) -> Settings:
    """``settings`` with what was learned of ``calls``, the training half; kept in the file ``caps``."""
    if not caps.is_file():
        write_whole(caps, calibrate([calls], settings=settings, tokenizer=tokenizer).model_dump_json().encode())
    return settings.model_copy(update={"caps": caps})


def measure(
    method: str,
    values: dict[str, Any],
    *,
    training: Sequence[PlannedCall],
    calls: Sequence[PlannedCall],
    caps: Path | None,
    warm: bool,
    tokenizer: Tokenizer,
) -> BySession:
    """Counts of ``calls``, session by session; a warm method replays the training half first and keeps its state.

    ``caps``: where what was learned of the training half is kept; None: agspec is not calibrated.
    """
    settings = make_settings(values, where="benchmarks/table")
    if caps is not None:
        lookup: LookupName = "suffix-tree" if method == "agspec-suffix" else "sam"
        settings = train(training, settings.with_lookup(lookup), tokenizer, caps)
    replayed = [*training, *calls] if warm else list(calls)
    by_call: list[Counter[str]] = []
    replay(METHODS[method](settings, tokenizer), replayed, max_draft=settings.max_draft, by_call=by_call)
    found: BySession = {}
    for call, counts in list(zip(replayed, by_call, strict=True))[len(replayed) - len(calls) :]:
        steps, tokens, drafted, accepted = (counts[key] for key in CALL_COUNTS)
        add(found, call.session, (steps, tokens, drafted, accepted))
    return found
