"""Files an agent opened, as the stores take them: found in a message, in the forms in which they will be emitted."""

from __future__ import annotations

from dataclasses import dataclass

from agspec.draft.emission import Form, emissions
from agspec.messages import Message, digest
from agspec.scaffold import Scaffold
from agspec.tokens import Tokenizer, Tokens


@dataclass(frozen=True, eq=False)
class OpenFile:
    """What identifies an opened file (path, content and forms), and its emission forms as token arrays."""

    key: tuple[str, str]
    forms: tuple[Tokens, ...]


def open_files(
    scaffold: Scaffold, forms: tuple[Form, ...], message: Message, tokenizer: Tokenizer
) -> tuple[OpenFile, ...]:
    """The files that ``message`` shows."""
    return tuple(open_file(file.path, file.text, forms, tokenizer) for file in scaffold.opened_files(message))


def open_file(path: str | None, text: str, forms: tuple[Form, ...], tokenizer: Tokenizer) -> OpenFile:
    """A file's text in each of ``forms``."""
    return OpenFile(
        (path or "", digest(text, *(form.name for form in forms)).hex()),
        tuple(tokenizer.encode(emitted) for _, emitted in emissions(text, forms)),
    )
