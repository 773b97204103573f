"""What a step's rows bring to the drafter, what it keeps of each request, and what it offers for one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from agspec.draft.align import Aligner
from agspec.draft.budget import Floats
from agspec.draft.counts import Draft
from agspec.draft.names import SourceName
from agspec.draft.panel import Panel
from agspec.draft.store import Session, Store, Tenant
from agspec.tokens import Tokens


@dataclass(frozen=True)
class Row:
    """One request in one step.

    ``context``: its last tokens, the new ones included, int32 [n]. ``num_new``: how many came since the last step.
    ``room``: most tokens that may be drafted.
    """

    request: str
    context: Tokens
    num_new: int
    room: int


@dataclass(eq=False)
class Request:
    """A request in flight.

    ``sources``: of each store asked, number of its slot, store and the request's document in it. ``region`` int64 [2]:
    see ``regions``; ``expected`` follows what the client expects the output to be; ``fared``: how its last candidates
    did.
    """

    session: Session
    role: str
    prompt: Tokens
    document: Any
    sources: list[tuple[int, Store, Any]]
    aligner: Aligner | None
    expected: Aligner | None = None
    output: list[int] = field(default_factory=list)
    pending: Draft | None = None
    panel: Panel = field(default_factory=Panel)
    region: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(2, np.int64))
    fared: int = 0


@dataclass(frozen=True)
class Ended:
    """What a request leaves: its ``output`` and the ``tail`` of its prompt, which the output goes on after."""

    tenant: Tenant
    output: Tokens
    tail: Tokens


@dataclass(frozen=True)
class Offer:
    """What one row would draft: a candidate, its chances, and the merit of each token (see ``budget``)."""

    request: str
    source: SourceName
    tokens: Tokens
    match_length: int
    chances: Floats
    merits: Floats | None
