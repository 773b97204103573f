"""agspec: coding agents answer faster on the GPUs they already have.

Public names load on first use, so that ``import agspec`` costs next to nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "AgspecError": "agspec.errors",
    "Automaton": "agspec.draft.automaton",
    "Drafter": "agspec.draft.drafter",
    "Settings": "agspec.settings",
    "Trace": "agspec.replay.trace",
    "build_drafter": "agspec.build",
    "load_tokenizer": "agspec.tokens",
    "read_trace": "agspec.replay.trace",
    "simulate": "agspec.replay.simulate",
}
__all__ = ["__version__", *_PUBLIC]  # noqa: PLE0604 - strings, all of them


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'agspec' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_PUBLIC[name]), name)
