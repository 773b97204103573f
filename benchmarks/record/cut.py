"""The clients' own prompt texts, cut down to the lines by which an agent is recognised.

System prompts, examples, rules and reminders are the clients' authors' texts. What stays of them is the lines
that hold a marker; what the user typed, files, commands and their output stay whole.
"""

from __future__ import annotations

from agspec.messages import Message
from agspec.replay.trace import Call

MARKERS = (
    "Act as an expert software developer.",
    "*SEARCH/REPLACE block* format",
    "*SEARCH/REPLACE block* Rules:",
    "You are an expert software engineer that generates concise,",
    "You are a helpful assistant that can interact with a computer",
    "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
)
EXAMPLES_END = "I switched to a new code base."
FILES_HEADER = "I have *added these files to the chat*"
REMINDER = "# *SEARCH/REPLACE block* Rules:"


def cut_call(call: Call) -> Call:
    """The call with its prompt cut."""
    messages = _without_examples(call.messages)
    first_user = next((i for i, m in enumerate(messages) if m.role == "user"), None)
    cut = tuple(_cut(message, index == first_user) for index, message in enumerate(messages))
    return call.model_copy(
        update={"messages": tuple(message for message in cut if message.content or message.tool_calls)}
    )


def _without_examples(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Without Aider's example chat, which stands between the system message and a line that ends it."""
    end = next((i for i, m in enumerate(messages) if m.role == "user" and m.content.startswith(EXAMPLES_END)), None)
    return messages if end is None else messages[:1] + messages[end + 2 :]


def _cut(message: Message, first_user: bool) -> Message:
    text = message.content
    if message.role == "system":
        text = _marker_lines(text)
    elif message.role == "user" and text.startswith(FILES_HEADER):
        header, trust, files = text.split("\n\n", 2)
        text = f"{header}\n\n{files}" if trust.startswith("*Trust") else text
    elif message.role == "user" and REMINDER in text:
        text = text[: text.index(REMINDER)] + REMINDER
    elif first_user:
        text = _task(text)
    return message.model_copy(update={"content": text})


def _task(text: str) -> str:
    """mini-swe-agent's first message: the task, and of the instructions around it the marker lines."""
    for begin, end in (
        ("<pr_description>\n", "</pr_description>\n"),
        ("Please solve this issue:", "\n\nYou can execute"),
    ):
        if text.startswith(begin) and end in text:
            at = text.index(end) + (len(end) if end.startswith("<") else 0)
            return text[:at] + "\n\n" + _marker_lines(text[at:])
    return text


def _marker_lines(text: str) -> str:
    """The first line for each marker that the text holds, in order."""
    kept: list[str] = []
    for line in text.splitlines():
        if any(marker in line and not any(marker in other for other in kept) for marker in MARKERS):
            kept.append(line.strip())
    return "\n".join(kept)
