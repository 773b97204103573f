"""The messages of an edit: instruction, files with line numbers where copies are asked for, a worked example."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from jinja2 import TemplateError

from agspec.copyedit.source import Source
from agspec.serve.edits.body import EditBody, File, Way


def messages(body: EditBody, file: File, way: Way, *, every: int = 1) -> list[dict[str, str]]:
    """Chat messages that ask for ``file``; all files are shown. ``every``: see ``numbered``."""
    told = wording(way if way == "whole" or every == 1 else "anchored")
    shown = "\n".join(f"{one.path}:\n{_shown(one.text, way, every)}" for one in body.files)
    asked = told["user"].replace("{path}", file.path).replace("{instruction}", body.instruction)
    return [
        {"role": "system", "content": told["system"]},
        {"role": "user", "content": told["example"]},
        {"role": "assistant", "content": told["answer"]},
        {"role": "user", "content": asked.replace("{files}", shown)},
    ]


def tokens_of(tokenizer: Any, told: Sequence[dict[str, Any]], **more: Any) -> list[int]:
    """As ``rendered``, in tokens."""
    return list(rendered(tokenizer, told, tokenize=True, **more))


def rendered(tokenizer: Any, told: Sequence[dict[str, Any]], **more: Any) -> Any:
    """By the model's chat template; where that knows no system message, it goes before the first of the user's.

    ``more``: of apply_chat_template.
    """
    options: dict[str, Any] = {"add_generation_prompt": True, "return_dict": False, **more}
    try:
        return tokenizer.apply_chat_template(told, **options)
    except TemplateError:
        system, first, *rest = told
        merged = {**first, "content": f"{system['content']}\n\n{first['content']}"}
        return tokenizer.apply_chat_template([merged, *rest], **options)


def numbered(text: str, every: int = 1) -> str:
    """Each line as ``number|line``; with ``every`` above 1 only lines 1, 1 + every, ... have their number.

    >>> numbered("a\\nb\\nc\\n", 2)
    '1|a\\n|b\\n3|c\\n'
    """
    lines = Source(text.encode()).lines
    heads = (str(n) if (n - 1) % every == 0 else "" for n in range(1, len(lines) + 1))
    return "".join(f"{head}|{line.decode().removesuffix(chr(10))}\n" for head, line in zip(heads, lines, strict=True))


@cache
def wording(kind: str) -> dict[str, str]:
    """What a table of prompts.toml says."""
    path = Path(__file__).with_name("prompts.toml")
    return cast(dict[str, dict[str, str]], tomllib.loads(path.read_text("utf-8")))[kind]


def _shown(text: str, way: Way, every: int) -> str:
    if way == "copy":
        return numbered(text, every)
    return text if text.endswith("\n") or not text else f"{text}\n"
