"""Who speaks: the tenant, and the session that a request names itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agspec.messages import digest
from agspec.scaffold import Profiles

TENANT_HEADER = "x-agspec-tenant"
LONGEST_NAME = 200
"""Characters of a session's name; a longer one is hashed."""


def tenant_of(headers: Mapping[str, str], *, share: bool) -> str:
    """The tenant: a hash of the API key, and of the tenant header where there is one; "" for requests with neither.

    ``headers``: names in lower case.
    """
    key = headers.get("authorization") or headers.get("x-api-key") or ""
    named = headers.get(TENANT_HEADER, "")
    if share or not (key or named):
        return ""
    return digest(key, named).hex()


def session_named(headers: Mapping[str, str], body: Mapping[str, Any], fields: SessionFields) -> str | None:
    """The id the client gives, under the first name that holds one; None where it gives none.

    A name with dots leads into objects. Claude Code hides its session in ``metadata.user_id``.
    """
    for name in fields.headers:
        if header := headers.get(name):
            return _short(header)
    for name in fields.body:
        value: Any = body
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, str) and value:
            return _short(value)
    user = body.get("metadata")
    user = user.get("user_id") if isinstance(user, Mapping) else None
    if isinstance(user, str) and "_session_" in user:
        return _short(user.rpartition("_session_")[2])
    return None


class SessionFields:
    """Where all profiles' agents name their sessions: those of ``generic`` first."""

    def __init__(self, profiles: Profiles) -> None:
        ranked = sorted(profiles.by_name.values(), key=lambda scaffold: (scaffold.name != "generic", scaffold.name))
        self.headers = _distinct(name.lower() for s in ranked for name in s.profile.session.headers)
        self.body = _distinct(name for s in ranked for name in s.profile.session.body)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _short(value: str) -> str:
    return value if len(value) <= LONGEST_NAME else digest(value).hex()
