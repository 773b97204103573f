"""Names of stores, of sources of drafts, and of the regions of an output."""

from __future__ import annotations

from typing import Literal

StoreName = Literal["session", "workspace", "shared", "corpus"]
"""``shared`` and ``corpus`` are the live and the frozen half of the global store."""
STORE_NAMES: tuple[StoreName, ...] = ("session", "workspace", "shared", "corpus")

SourceName = Literal["session", "workspace", "shared", "corpus", "aligned"]
"""Where a draft comes from: a store, or the request's own text followed through edits (``align.py``)."""
SOURCE_NAMES: tuple[SourceName, ...] = (*STORE_NAMES, "aligned")

RegionName = Literal["prose", "thinking", "call", "edit", "new"]
"""What is being written: prose, reasoning, a tool call's frame, an edit of old text, the body of a new file."""
REGION_NAMES: tuple[RegionName, ...] = ("prose", "thinking", "call", "edit", "new")

PartName = Literal["aligned", "regions", "multiplier", "batch"]
"""Parts of the policy that can be switched off, to measure what each is worth."""
PART_NAMES: tuple[PartName, ...] = ("aligned", "regions", "multiplier", "batch")
