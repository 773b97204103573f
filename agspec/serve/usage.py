"""Tells in a response's usage what became of the request's prediction, as OpenAI's API does."""

from __future__ import annotations

from typing import Any

import orjson

Fate = tuple[int, int]
"""Tokens of the prediction that were drafted, and of these those that were accepted."""


def told(body: dict[str, Any], fate: Fate) -> bool:
    """Put the fate into the usage of a response, or of a stream's chunk; whether there was a usage to put it into."""
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return False
    drafted, accepted = fate
    details = usage.get("completion_tokens_details") or {}
    usage["completion_tokens_details"] = {
        **details, "accepted_prediction_tokens": accepted, "rejected_prediction_tokens": drafted - accepted,
    }  # fmt: skip
    return True


def in_response(content: bytes, fate: Fate) -> bytes:
    """A whole response; one without usage comes back as it was."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        return content
    return orjson.dumps(body) if isinstance(body, dict) and told(body, fate) else content


def has_usage(piece: bytes) -> bool:
    """Whether a piece of a stream tells usage."""
    return b'"usage":{' in piece


def in_stream(piece: bytes, fate: Fate) -> bytes:
    """A piece of a stream of server-sent events, whole lines."""
    lines = piece.split(b"\n")
    for i, line in enumerate(lines):
        if line.startswith(b"data: {"):
            lines[i] = b"data: " + in_response(line[6:], fate)
    return b"\n".join(lines)
