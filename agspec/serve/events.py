"""Server-sent events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson


def event(data: Mapping[str, Any]) -> bytes:
    """One of them, of a JSON object."""
    return b"data: " + orjson.dumps(data) + b"\n\n"
