"""Outputs of ended requests, until the API side says whether they were taken to their end.

The worker cannot tell: a client that left and a stop string both look like an abort. Either side may be first.
"""

from __future__ import annotations

from agspec.draft.request import Ended
from agspec.latest import Latest

MOST = 4096
"""Requests remembered; the oldest are forgotten, their outputs with them."""


class Parked:
    """By request: outputs that wait for word, or the word that came before them."""

    def __init__(self) -> None:
        self._outputs: Latest[str, list[Ended]] = Latest(MOST)
        self._words: Latest[str, bool] = Latest(MOST)

    def __len__(self) -> int:
        return len(self._outputs)

    def park(self, key: str, ended: Ended) -> list[Ended]:
        """An output has ended; it comes back if it was taken to its end, as far as is known."""
        if key in self._words:
            return [ended] if self._words[key] else []
        self._outputs[key] = [*self._outputs.get(key, ()), ended]
        return []

    def told(self, key: str, complete: bool) -> list[Ended]:
        """Word of a request; its outputs that have waited, if they were taken to their end."""
        self._words[key] = complete
        waiting = self._outputs.pop(key, [])
        return waiting if complete else []
