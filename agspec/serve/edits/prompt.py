"""The messages of an edit: instruction, files with line numbers where copies are asked for, a worked example."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, cast

from jinja2 import TemplateError

from agspec.copyedit.source import Source
from agspec.serve.edits.body import EditBody, File, Way


def messages(body: EditBody, file: File, way: Way) -> list[dict[str, str]]:
    """Chat messages that ask for ``file``; all files are shown."""
    told = _prompts()[way]
    shown = "\n".join(f"{one.path}:\n{_shown(one.text, way)}" for one in body.files)
    asked = told["user"].replace("{path}", file.path).replace("{instruction}", body.instruction)
    return [
        {"role": "system", "content": told["system"]},
        {"role": "user", "content": told["example"]},
        {"role": "assistant", "content": told["answer"]},
        {"role": "user", "content": asked.replace("{files}", shown)},
    ]


def tokens_of(tokenizer: Any, told: list[dict[str, str]]) -> list[int]:
    """By the model's chat template; where that knows no system message, it goes before the first of the user's."""
    options: dict[str, Any] = {"tokenize": True, "add_generation_prompt": True, "return_dict": False}
    try:
        return list(tokenizer.apply_chat_template(told, **options))
    except TemplateError:
        system, first, *rest = told
        merged = {**first, "content": f"{system['content']}\n\n{first['content']}"}
        return list(tokenizer.apply_chat_template([merged, *rest], **options))


def _shown(text: str, way: Way) -> str:
    if way == "whole":
        return text if text.endswith("\n") or not text else f"{text}\n"
    lines = Source(text.encode()).lines
    return "".join(f"{number}|{line.decode().removesuffix(chr(10))}\n" for number, line in enumerate(lines, 1))


@cache
def _prompts() -> dict[str, dict[str, str]]:
    path = Path(__file__).with_name("prompts.toml")
    return cast(dict[str, dict[str, str]], tomllib.loads(path.read_text("utf-8")))
