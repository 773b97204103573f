"""What is said of a corpus: in the reports it was used for, and on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from agspec.corpus import CorpusInfo, read_info
from agspec.replay.corpus.build import task_of

SHOWN = 20
"""Sources, or names, shown on the terminal."""


def corpus_told(folder: Path | None, sessions: Iterable[str]) -> dict[str, Any] | None:
    """Size, sources and excluded sessions of the corpus in ``folder``; ``overlap``: which of ``sessions`` it holds.

    Sessions of one task (``x``, ``x#2``) count as one another. None without a corpus; raises InputError.
    """
    if folder is None:
        return None
    info = read_info(folder)
    held = {task_of(session) for session in info.sessions}
    evaluated = dict.fromkeys(sessions)
    return {
        "num_tokens": info.num_tokens,
        "num_documents": info.num_documents,
        "sources": [source.name for source in info.sources],
        "excluded": list(info.excluded),
        "num_evaluated": len(evaluated),
        "overlap": [session for session in evaluated if task_of(session) in held],
    }


def info_table(info: CorpusInfo) -> Table:
    """What corpus.json says, for the terminal."""
    facts = {
        "tokens": f"{info.num_tokens:,}",
        "documents": f"{info.num_documents:,}",
        "bytes": f"{info.num_bytes:,} ({info.num_bytes / info.num_tokens:.2f} a token)",
        "tokenizer": f"{info.tokenizer_name} ({info.tokenizer})",
        "tool wire": info.tool_wire or "none: text",
        "created": info.created,
        "sessions": _listed(info.sessions),
        "kept out": _listed([f"{name} ({count} outputs)" for name, count in info.excluded.items()]),
    }
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(Text(name), Text(value))
    for i, source in enumerate(info.sources[:SHOWN]):
        told = f"{source.name}: {source.num_tokens:,} tokens, sha256 {source.sha256[:16]}..."
        table.add_row(Text("" if i else "sources"), Text(told))
    if len(info.sources) > SHOWN:
        table.add_row("", Text(f"and {len(info.sources) - SHOWN:,} more (--json)"))
    return table


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - SHOWN:,} more (--json)" if len(names) > SHOWN else ""
    return f"{len(names):,}: " + ", ".join(names[:SHOWN]) + more
