"""What a server drafts, as tables."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.markup import escape
from rich.table import Table


def view(stats: dict[str, Any], sessions: list[dict[str, Any]]) -> Group:
    """Tables of /v1/agspec/stats and /v1/agspec/sessions."""
    worker = stats["workers"][0]
    return Group(
        _counts("source", worker["by_source"]),
        _counts("role", worker["by_role"]),
        _sessions(sessions),
        f"{stats['num_sessions']} sessions of all tenants, errors {stats['errors'] | worker['errors'] or 'none'}",
    )


def _counts(name: str, counts: dict[str, dict[str, int]]) -> Table:
    table = Table(name, "drafts", "drafted", "accepted", "accepted a draft", title=f"by {name}", title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for key, row in sorted(counts.items(), key=lambda item: -item[1]["num_accepted_tokens"]):
        drafts, drafted, accepted = (row[k] for k in ("num_drafts", "num_draft_tokens", "num_accepted_tokens"))
        table.add_row(escape(key), f"{drafts:,}", f"{drafted:,}", f"{accepted:,}", f"{accepted / max(1, drafts):.2f}")
    return table


def _sessions(sessions: list[dict[str, Any]]) -> Table:
    table = Table("session", "agent", "requests", "roles", "linked by", title="your sessions", title_justify="left")
    table.columns[2].justify = "right"
    for session in sessions[:20]:
        roles, links = (" ".join(f"{k} {n}" for k, n in session[key].items()) for key in ("roles", "links"))
        table.add_row(escape(session["session"][:40]), session["scaffold"], str(session["num_requests"]), roles, links)
    return table
