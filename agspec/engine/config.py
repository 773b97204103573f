"""What the launcher tells the proposer in the worker processes, through one environment variable."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

from agspec.errors import SettingsError
from agspec.settings import Settings, make_settings, read_settings

VARIABLE = "AGSPEC_SETTINGS"
"""Path of a TOML settings file, or a JSON object of settings."""

SESSION, TENANT, ROLE = "agspec_session", "agspec_tenant", "agspec_role"
"""Keys of a request's extra_args (``vllm_xargs`` over HTTP); all optional."""
REQUEST = "agspec_request"
"""As these: a name under which ``agspec_ended`` will tell whether the request's output was taken to its end."""
SECRET = "AGSPEC_SECRET"
"""Variable that ``agspec serve`` sets: only requests whose name begins with its value are drafted for then.

So what reaches the engine past our middleware, by another route or in a form it could not read, joins no tenant.
"""


def to_environment(settings: Settings) -> dict[str, str]:
    """The variable that hands ``settings`` to every process of the engine."""
    return {VARIABLE: settings.model_dump_json(exclude_defaults=True)}


def log_with_vllm() -> None:
    """Let agspec's log come out where and as vLLM's does, in whichever of its processes this is."""
    log, vllm = logging.getLogger("agspec"), logging.getLogger("vllm")
    log.disabled = False
    for handler in vllm.handlers:
        if handler not in log.handlers:
            log.addHandler(handler)
            log.setLevel(vllm.level)
            log.propagate = False


def from_environment() -> Settings:
    """The settings in force here; defaults without the variable. Raises SettingsError in one line."""
    value = os.environ.get(VARIABLE, "").strip()
    if not value:
        return Settings()
    if not value.startswith("{"):
        return read_settings(Path(value))
    try:
        values: dict[str, Any] = json.loads(value)
    except ValueError as error:
        raise SettingsError(f"{VARIABLE}: want a JSON object or a TOML file's path, got {value[:60]!r}") from error
    return make_settings(values, where=VARIABLE)
