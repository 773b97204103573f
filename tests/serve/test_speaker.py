"""Who speaks: tenants by key and header, sessions by the names that clients give."""

from __future__ import annotations

from typing import Any

import pytest

from agspec.errors import SettingsError
from agspec.scaffold import load_profiles
from agspec.serve.config import VARIABLE, ServeConfig, tool_wire_of
from agspec.serve.speaker import LONGEST_NAME, SessionFields, session_named, tenant_of

FIELDS = SessionFields(load_profiles())


def test_tenants() -> None:
    told = [
        tenant_of(headers, share=False)
        for headers in (
            {}, {"authorization": "Bearer a"}, {"authorization": "Bearer b"}, {"x-agspec-tenant": "a"},
            {"authorization": "Bearer a", "x-agspec-tenant": "a"},
            {"authorization": "Bearer a", "x-agspec-tenant": "b"},
        )
    ]  # fmt: skip
    assert told[0] == ""
    assert len(set(told)) == len(told)
    assert not any("Bearer" in tenant for tenant in told)
    assert tenant_of({"authorization": "Bearer a", "x-agspec-tenant": "b"}, share=True) == ""


@pytest.mark.parametrize(
    ("headers", "body", "name"),
    [
        ({}, {}, None),
        ({"x-session-id": "a", "x-litellm-session-id": "b"}, {"session_id": "c"}, "a"),
        ({"x-litellm-session-id": "b"}, {"prompt_cache_key": "c"}, "b"),
        ({}, {"session_id": "c", "prompt_cache_key": "d"}, "c"),
        ({}, {"prompt_cache_key": "d", "user": "me"}, "d"),
        ({}, {"metadata": {"session_id": "e"}}, "e"),
        ({}, {"metadata": {"user_id": "user_1_account__session_0f-1"}}, "0f-1"),
        ({}, {"metadata": {"user_id": "someone"}, "user": "someone"}, None),
        ({}, {"metadata": [1], "session_id": 3, "prompt_cache_key": ""}, None),
    ],
)
def test_sessions(headers: dict[str, str], body: dict[str, Any], name: str | None) -> None:
    assert session_named(headers, body, FIELDS) == name


def test_a_long_name_is_cut() -> None:
    one, two = (session_named({"x-session-id": "x" * 10_000 + end}, {}, FIELDS) for end in "ab")
    assert one is not None
    assert one != two
    assert len(one) < LONGEST_NAME


def test_config_by_the_environment() -> None:
    config = ServeConfig(scaffold="aider", share_tenants=True)
    assert ServeConfig.from_environment(config.to_environment()) == config
    assert ServeConfig.from_environment({}) == ServeConfig()
    for value, line in (
        ('{"scaffolds": 1}', "AGSPEC_SERVE: scaffolds: Extra inputs are not permitted, got 1"),
        ("{", "AGSPEC_SERVE: AGSPEC_SERVE: Invalid JSON"),
    ):
        with pytest.raises(SettingsError, match=line):
            ServeConfig.from_environment({VARIABLE: value})


def test_tool_wires() -> None:
    assert [tool_wire_of(name) for name in ("qwen3_xml", "glm45", "minimax_m2")] == ["raw"] * 3
    assert [tool_wire_of(name) for name in ("hermes", "deepseek_v3", "kimi_k2", "openai", None)] == ["json"] * 5
