"""Shared by the tests: where the recorded sessions lie, the mark for tests that need them, candidates in a panel."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from agspec.draft.lookup import Candidate
from agspec.draft.panel import Panel

SHARED = Path(__file__).resolve().parents[2] / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="shared recorded sessions are not at hand")
needs_arctic = pytest.mark.skipif(find_spec("arctic_inference") is None, reason="arctic-inference is not installed")


def put(panel: Panel, source: int, one: Candidate) -> None:
    """Write a candidate where a lookup would."""
    n = one.tokens.size
    for slot, values in zip(panel.slots[source], (one.tokens, one.probs, one.counts, one.hits), strict=True):
        slot[:n] = values
    panel.put(source, n, one.match_length)
