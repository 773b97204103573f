"""One pass over a family's calls that replays every setting of a baseline, each at its own steps.

A text is fed token by token; a setting drafts where its own last step ended. What is fed ends with the call's tape,
as vLLM ends a request at its end-of-turn token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from agspec.draft.novel import common_prefix
from agspec.replay.plan import PlannedCall
from benchmarks.table.counts import BySession, add
from benchmarks.table.rest import RestText
from benchmarks.table.texts import NgramText, SamText, SuffixText, Text, Values

TEXTS: dict[str, Callable[[], Text]] = {
    "ngram": NgramText,
    "suffix 24": lambda: SuffixText(24),
    "suffix 64": lambda: SuffixText(64),
    "sam": SamText,
    "rest": RestText,
}
"""What each baseline keeps; the suffix tree is another one at each depth."""
LONGEST = 64


@dataclass
class _Place:
    """Where a setting is in the call: the end of its last step, and its counts so far."""

    values: Values
    end: int
    steps: int = 1
    drafted: int = 0
    accepted: int = 0


def sweep(text: Text, variants: Sequence[Values], calls: Iterable[PlannedCall]) -> list[BySession]:
    """Counts of each of ``variants``, session by session."""
    found: list[BySession] = [{} for _ in variants]
    for call in calls:
        size, total = int(call.prompt.size), int(call.prompt.size + call.tape.size)
        sequence = np.concatenate((call.prompt, call.tape, np.repeat(call.tape[-1:], LONGEST + 1)))
        text.start(call)
        places = [_Place(values, size + 1) for values in variants]
        fed = size
        while fed < total:
            end = min(total, *(place.end for place in places))
            text.feed(sequence[fed:end])
            fed = end
            for place in places:
                if place.end == end < total:
                    _step(text, place, sequence)
        text.finish()
        for counts, place in zip(found, places, strict=True):
            add(counts, call.session, (place.steps, int(call.tape.size), place.drafted, place.accepted))
    return found


def _step(text: Text, place: _Place, sequence: np.ndarray) -> None:
    draft = text.draft(sequence[: place.end], place.values)
    accepted = common_prefix(draft, sequence[place.end :]) if draft.size else 0
    place.steps += 1
    place.drafted += int(draft.size)
    place.accepted += accepted
    place.end += accepted + 1
