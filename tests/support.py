"""Shared by the tests: where the recorded sessions lie, and the mark for tests that need them."""

from importlib.util import find_spec
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="shared recorded sessions are not at hand")
needs_arctic = pytest.mark.skipif(find_spec("arctic_inference") is None, reason="arctic-inference is not installed")
