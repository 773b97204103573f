"""What the importers share: bad records, session names, and chat messages as the OpenAI API shapes them."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from agspec.errors import InputError, RecordError
from agspec.replay.trace import Message, Output, ToolCall, open_bytes


class Importing:
    """State of one import: what was skipped, which session names are taken."""

    def __init__(self, *, skip_bad: bool) -> None:
        self.skip_bad = skip_bad
        self.skipped: list[str] = []
        self._names: set[str] = set()

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Let an InputError of the body pass, or note it and go on where bad records are skipped."""
        try:
            yield
        except InputError as error:
            if not self.skip_bad:
                raise
            self.skipped.append(str(error))

    def new_session(self, name: str) -> str:
        """A session name not yet taken in this trace: ``name``, ``name#2``, ..."""
        unique, number = name, 1
        while unique in self._names:
            number += 1
            unique = f"{name}#{number}"
        self._names.add(unique)
        return unique

    def files(self, sources: Sequence[Path], *suffixes: str) -> Iterator[Path]:
        """The sources, with a directory replaced by the files below it that end in a suffix (or suffix.gz)."""
        for source in sources:
            if not source.is_dir():
                yield source
                continue
            below = sorted(path for path in source.rglob("*") if path.is_file())
            found = [path for path in below if path.name.removesuffix(".gz").endswith(suffixes)]
            with self.guard():
                if not found:
                    raise InputError(f"{source}: want files named *{' or *'.join(suffixes)} below it, got none")
            yield from found


def load(path: Path) -> bytes:
    """Content of a file, unzipped; what cannot be read is laid on its first record."""
    try:
        return open_bytes(path)
    except InputError as error:
        raise RecordError(path, 1, str(error).removeprefix(f"{path}: ")) from error


def decode(data: bytes, file: object, record: object = 1) -> str:
    """UTF-8 text, line ends as they are."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RecordError(file, record, f"want UTF-8 text, got byte {data[error.start]:#04x} in line {line}") from error


def json_object(data: bytes, file: object, record: object = 1) -> dict[str, Any]:
    """A JSON object, or RecordError."""
    try:
        value = orjson.loads(data.removeprefix(codecs.BOM_UTF8))
    except orjson.JSONDecodeError as error:
        raise RecordError(file, record, f"want a JSON object, got {data[:40]!r} ({error})") from error
    found: dict[str, Any] = want(value, dict, file, record, "")
    return found


def want(value: Any, kind: type[Any], file: object, record: object, field: str) -> Any:
    """``value`` if it is of the kind, else RecordError naming the field."""
    if isinstance(value, kind):
        return value
    names: dict[type[Any], str] = {dict: "a JSON object", list: "a list", str: "text"}
    where = f"{field}: " if field else ""
    got = {type(None): "nothing", dict: "an object", list: "a list", str: "text"}.get(type(value), type(value).__name__)
    raise RecordError(file, record, f"{where}want {names[kind]}, got {got}")


def text(content: Any, file: object, record: object, field: str = "content") -> str:
    """Message content as one text: None is empty, text parts are joined, images and the like are left out."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise RecordError(file, record, f"{field}: want text or a list of parts, got {type(content).__name__}")
    parts = []
    for part in content:
        if isinstance(part, str):
            parts.append(part)
        elif "text" in want(part, dict, file, record, f"{field} part"):
            parts.append(want(part["text"], str, file, record, f"{field} part"))
    return "".join(parts)


def tool_calls(message: dict[str, Any], file: object, record: object) -> tuple[ToolCall, ...]:
    """Tool calls of a message, arguments as recorded (``function_call``, the form of 2023, too)."""
    functions = [
        want(want(call, dict, file, record, "tool_calls").get("function"), dict, file, record, "tool_calls.function")
        for call in want(message.get("tool_calls") or [], list, file, record, "tool_calls")
    ]
    if message.get("function_call"):
        functions.append(want(message["function_call"], dict, file, record, "function_call"))
    calls = []
    for function in functions:
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = orjson.dumps(arguments).decode()
        name = want(function.get("name"), str, file, record, "function.name")
        calls.append(ToolCall(name=name, arguments=want(arguments, str, file, record, "function.arguments")))
    return tuple(calls)


def message(value: Any, file: object, record: object) -> Message:
    """One prompt message; reasoning of earlier turns is not sent again and left out."""
    value = want(value, dict, file, record, "message")
    return Message(
        role=want(value.get("role"), str, file, record, "role"),
        content=text(value.get("content"), file, record),
        tool_calls=tool_calls(value, file, record),
    )


def messages(value: Any, file: object, record: object) -> tuple[Message, ...]:
    """The prompt: at least one message."""
    if not want(value, list, file, record, "messages"):
        raise RecordError(file, record, "messages: want at least one, got none")
    return tuple(message(item, file, record) for item in value)


def output(value: Any, file: object, record: object) -> Output:
    """The assistant message that a model answered with."""
    value = want(value, dict, file, record, "message")
    reasoning = value.get("reasoning_content") or value.get("reasoning")
    if reasoning is not None:
        reasoning = want(reasoning, str, file, record, "reasoning")
    calls = tool_calls(value, file, record)
    if value.get("content") is None and not calls and not reasoning:
        raise RecordError(file, record, "want content, reasoning or tool calls in the answer, got none")
    return Output(content=text(value.get("content"), file, record), reasoning=reasoning, tool_calls=calls)


def response_message(response: Any, file: object, record: object) -> dict[str, Any]:
    """The first choice's message of a chat.completions response."""
    response = want(response, dict, file, record, "response")
    if response.get("error"):
        raise RecordError(file, record, f"want an answer, got the error {str(response['error'])[:80]!r}")
    choices = want(response.get("choices"), list, file, record, "response.choices")
    if not choices:
        raise RecordError(file, record, "response.choices: want at least one, got none")
    choice = want(choices[0], dict, file, record, "response.choices")
    found: dict[str, Any] = want(choice.get("message"), dict, file, record, "response.choices.message")
    return found


def tools(value: Any, file: object, record: object) -> tuple[dict[str, Any], ...]:
    """The request's tool definitions, as recorded."""
    listed = want(value or [], list, file, record, "tools")
    return tuple(want(tool, dict, file, record, "tools") for tool in listed)


def optional_text(value: Any) -> str | None:
    """The text, or None where there is none."""
    return value if isinstance(value, str) and value else None


def as_text(path: Path) -> str:
    """The path as text that can be written as UTF-8, whatever bytes it has."""
    return str(path).encode(errors="replace").decode()


def stem(path: Path, *suffixes: str) -> str:
    """File name without .gz and the first of the suffixes that fits."""
    name = as_text(Path(path.name)).removesuffix(".gz")
    for suffix in suffixes:
        if name.endswith(suffix) and name != suffix:
            return name.removesuffix(suffix)
    return name
