"""vLLM's command, in which the header ``x-tape`` tells a completion its tokens: ``python -m agspec.serve.fim.forced``.

Every forward pass, drafted and verified token is real; only the sampled token is forced (see ``agspec.engine.tape``).
For measuring and testing; a server that people use is started by ``agspec serve``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from agspec.engine import vllm_cpu
from agspec.engine.patches import force_tapes
from agspec.engine.tape import TAPE
from agspec.serve.fim import attach
from agspec.serve.fim.asked import Asked
from agspec.serve.fim.routes import Extra, FimRoutes
from agspec.serve.fim.service import FimService

HEADER = "x-tape"
MODULE = "agspec.serve.fim.forced"
FAMILY = Path(__file__).with_name("embedded.toml")
"""Markers of the embedded model, which knows none."""


class ForcedRoutes(FimRoutes):
    """Completions that are told their tokens: a JSON list in HEADER."""

    def __init__(self, service: FimService, *, extra: Extra, **more: Any) -> None:
        def forced(headers: Mapping[str, str], asked: Asked) -> tuple[Mapping[str, Any], Callable[[bool], None]]:
            told, end = extra(headers, asked)
            return ({**told, TAPE: orjson.loads(headers[HEADER])} if HEADER in headers else told), end

        super().__init__(service, extra=forced, **more)


def force() -> None:
    """Let tapes force what is sampled, in this process: of the API server, or of the engine core, where grammars are
    made."""
    vllm_cpu.mend_version()
    force_tapes()
    attach.made_of = ForcedRoutes


if __name__ in ("__main__", "__mp_main__"):  # the engine core is a child of this process
    force()
if __name__ == "__main__":
    vllm_cpu.main()
