"""Records what was served as traces, so that a team can calibrate on its own work. Opt-in.

A trace is one tenant's: the tenant without a name is recorded in FILE, another in FILE with its hash in the name. Files
are for their owner's eyes (mode 0600); what looks like a secret is struck out. A call is appended whole when its answer
has ended; where that fails, as on a full disk, recording ends and serving goes on.
"""

from __future__ import annotations

import gzip
import logging
import re
from collections.abc import Sequence
from pathlib import Path

from agspec.appending import append_whole
from agspec.errors import InputError
from agspec.replay.trace import Call, TraceLines, header_line

log = logging.getLogger("agspec")

STRUCK = "[redacted]"
SECRETS = (
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    r"(?<![\w-])(?:sk|pk|rk)[-_][\w-]{20,}",
    r"(?<![\w-])gh[pousr]_[A-Za-z0-9]{30,}",
    r"(?<![\w-])github_pat_\w{30,}",
    r"(?<![\w-])glpat-[\w-]{20,}",
    r"(?<![\w-])(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"(?<![\w-])AIza[\w-]{35}",
    r"(?<![\w-])xox[abprs]-[A-Za-z0-9-]{10,}",
    r"(?<![\w-])eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
    r"(?<=://)[^\s/:@]+:[^\s/@]+(?=@)",
    r"(?<=[Bb]earer )[A-Za-z0-9._~+/-]{16,}=*",
)
"""What is struck out: private keys, keys of well-known services, JWTs, passwords in URLs, bearer tokens.

Each begins where no word does, so that a long text is gone through once.
"""


def tagged(path: Path, tag: object) -> Path:
    """A file beside ``path``.

    >>> tagged(Path("runs/t.jsonl.gz"), 7).as_posix()
    'runs/t-7.jsonl.gz'
    """
    name, dot, suffixes = path.name.partition(".")
    return path.with_name(f"{name}-{tag}{dot}{suffixes}")


class Recorder:
    """Appends calls to ``path``'s files; ``redact``: further regular expressions that are struck out."""

    def __init__(self, path: Path, *, redact: Sequence[str] = ()) -> None:
        self._path = path
        self._lines: dict[str, TraceLines] = {}
        self.failed: str | None = None
        try:
            self._secrets = re.compile("|".join(f"(?:{source})" for source in (*SECRETS, *redact)))
        except re.error as error:
            raise InputError(f"redact: want a regular expression, got: {error}") from error
        self._append("", b"")

    def add(self, tenant: str, call: Call) -> None:
        """Record a call."""
        if self.failed is not None:
            return
        struck = Call.model_validate(_struck(call.model_dump(mode="json"), self._secrets))
        lines = self._lines.setdefault(tenant, TraceLines())
        try:
            self._append(tenant, lines.line(struck))
        except InputError as error:
            self.failed = str(error)
            log.error("agspec: recording has ended: %s", error)

    def forget(self, tenant: str, session: str) -> None:
        """A session is over: what is new after its last call need not be known any more."""
        if tenant in self._lines:
            self._lines[tenant].forget(session)

    def path_of(self, tenant: str) -> Path:
        """The file of a tenant's calls."""
        return tagged(self._path, tenant) if tenant else self._path

    def _append(self, tenant: str, line: bytes) -> None:
        """Append, whole or not at all; a new file begins with its header."""
        path = self.path_of(tenant)

        def data(new: bool) -> bytes:
            content = header_line("agspec serve") + line if new else line
            return gzip.compress(content) if path.suffix == ".gz" and content else content

        append_whole(path, data)


def _struck(value: object, secrets: re.Pattern[str]) -> object:
    if isinstance(value, str):
        return secrets.sub(STRUCK, value)
    if isinstance(value, list):
        return [_struck(item, secrets) for item in value]
    if isinstance(value, dict):
        return {key: _struck(item, secrets) for key, item in value.items()}
    return value
