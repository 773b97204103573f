"""``agspec serve``'s command line."""

from __future__ import annotations

import json
import shlex

import pytest

from agspec.engine.config import SECRET
from agspec.engine.config import VARIABLE as SETTINGS
from agspec.errors import InputError
from agspec.serve.command import PLUGINS, Command, command
from agspec.serve.config import VARIABLE, ServeConfig
from agspec.settings import Settings


def made(*flags: str, model: str = "org/model", environment: dict[str, str] | None = None) -> Command:
    return command(
        model, flags, settings=Settings(max_draft=16), config=ServeConfig(share_tenants=True),
        environment=environment or {},
    )  # fmt: skip


def test_everything_is_in_place() -> None:
    one = made("--port", "8001", "--tool-call-parser=hermes", environment={PLUGINS: "other"})
    words = list(one.arguments)
    assert words[words.index("serve") + 1 : words.index("serve") + 5] == [
        "org/model", "--port", "8001", "--tool-call-parser=hermes",
    ]  # fmt: skip
    assert json.loads(words[words.index("--speculative-config") + 1]) == {
        "method": "custom_class", "model": "agspec.engine.proposer.Proposer", "num_speculative_tokens": 16,
    }  # fmt: skip
    assert words[words.index("--worker-extension-cls") + 1] == "agspec.engine.extension.Extension"
    secret = one.environment[SECRET]
    assert len(secret) == 32
    assert made().environment[SECRET] != secret
    assert made(environment={SECRET: "mine"}).environment[SECRET] == "mine"
    assert one.environment == {
        SECRET: secret,
        PLUGINS: "other,agspec",
        SETTINGS: '{"max_draft":16}',
        VARIABLE: '{"share_tenants":true}',
    }
    assert made(environment={PLUGINS: "agspec"}).environment[PLUGINS] == "agspec"


def test_a_users_flag_stands() -> None:
    words = made("--shutdown_timeout=60", "--no-enable-prefix-caching", "--seed", "-1").arguments
    assert "--shutdown-timeout" not in words
    assert "--enable-prefix-caching" not in words


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ((), ["org/model", "org/model+copy"]),
        (("--served-model-name", "mine", "--port", "1"), ["mine", "mine+copy"]),
        (("--served-model-name=mine",), ["mine", "mine+copy"]),
        (("--served_model_name", "mine", "other"), ["mine", "mine+copy", "other"]),
    ],
)
def test_with_copy_edits_the_model_has_a_second_name(flags: tuple[str, ...], names: list[str]) -> None:
    one = command("org/model", flags, settings=Settings(), config=ServeConfig(copy_edits=True), environment={})
    words = list(one.arguments)
    at = words.index("--served-model-name")
    assert words[at + 1 : at + 1 + len(names)] == names
    assert words.count("--served-model-name") == 1
    assert words[words.index("--scheduler-cls") + 1] == "agspec.engine.copies.scheduler.CopyScheduler"
    assert not {"--served-model-name", "--scheduler-cls"} & set(made().arguments)


def test_printed_it_is_a_shell_line() -> None:
    one = made()
    words = shlex.split(str(one))
    assert words[: len(one.environment)] == [f"{name}={value}" for name, value in one.environment.items()]
    assert tuple(words[len(one.environment) :]) == one.arguments


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (("--async-scheduling",), "--async-scheduling: vLLM 0.32 .*left out"),
        (("--pipeline-parallel-size", "2"), "--pipeline-parallel-size: want 1 with agspec, got 2"),
        (("--pipeline_parallel_size=2",), "--pipeline-parallel-size: want 1 with agspec, got 2"),
        (("-pp", "2"), "-pp: want 1 with agspec, got 2"),
        (("--distributed-executor-backend", "external_launcher"), "want mp, ray or uni with agspec"),
        (("--speculative-config", "{}"), "--speculative-config: agspec sets this itself"),
        (("--speculative_config.method", "ngram"), "agspec sets this itself"),
        (("--worker-extension-cls=x.Y",), "agspec sets this itself"),
    ],
)
def test_A12_what_cannot_go_with_it_is_one_line(flags: tuple[str, ...], line: str) -> None:
    with pytest.raises(InputError, match=line):
        made(*flags)
