"""Edits as records to train on: the messages of ``/v1/edits``, and the cheapest program as the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from agspec import embedded
from agspec.copyedit.ceiling import Case
from agspec.copyedit.compile import Cost, compile_edit
from agspec.copyedit.program import show
from agspec.copyedit.source import Source
from agspec.errors import InputError
from agspec.serve.edits.body import EditBody
from agspec.serve.edits.prompt import messages, rendered
from agspec.tokens import Tokenizer

Record = dict[str, Any]
"""``name``, ``path``, ``instruction``, ``before``, ``after``, ``program``, ``messages`` (the program's last), and with
a chat template ``prompt`` and ``completion`` as text, the end of the turn included."""


def records(
    cases: Iterable[Case], tokenizer: Tokenizer, *, max_tokens: int, chat: Any = None, every: int = 1
) -> Iterator[Record]:
    """A record for each case that changes something and has at most ``max_tokens`` tokens in all.

    ``chat``: transformers' tokenizer of a model with a chat template; ``every``: see prompt.numbered.
    """

    def size(data: bytes) -> float:
        return float(tokenizer.encode(data.decode()).size)

    for case in cases:
        if case.before == case.after or not case.before:
            continue
        program = show(compile_edit([Source(case.before.encode())], case.after.encode(), cost=Cost(text=size)))
        told = asked(case.name, case.before, case.instruction, every=every)
        answer = {"role": "assistant", "content": program.decode()}
        if sum(tokenizer.encode(message["content"]).size for message in (*told, answer)) > max_tokens:
            continue
        record: Record = {
            "name": case.name, "path": case.name, "instruction": case.instruction, "before": case.before,
            "after": case.after, "program": program.decode(), "messages": [*told, answer],
        }  # fmt: skip
        if chat is not None:
            prompt = rendered(chat, told, tokenize=False)
            whole = rendered(chat, [*told, answer], tokenize=False, add_generation_prompt=False)
            record |= {"prompt": prompt, "completion": whole.removeprefix(prompt)}
        yield record


def load_chat_tokenizer(model: str) -> Any:
    """transformers' tokenizer of ``model``; raises InputError where there is none, or it has no chat template."""
    from transformers import AutoTokenizer

    try:
        found = AutoTokenizer.from_pretrained(embedded.resolve(model))
    except (OSError, ValueError) as error:
        raise InputError(f"{model}: want a model's name or folder, got: {error!s:.200}") from error
    if found.chat_template is None:
        raise InputError(f"{model}: want a tokenizer with a chat template, got one without")
    return found


def asked(path: str, before: str, instruction: str, *, every: int = 1) -> list[dict[str, str]]:
    """The messages that ask for one file's program."""
    body = EditBody.model_validate(
        {"model": "model", "instruction": instruction, "files": [{"path": path, "text": before}], "edit": "copy"}
    )
    return messages(body, body.files[0], "copy", every=every)
