"""A trace made ready for replay: token ids of each call's prompt and output, its role, the files it opened.

Simulator and engine replay the same plan, so they see the same events in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from agspec.draft.emission import Form
from agspec.messages import Message, Role, tool_name
from agspec.opened import OpenFile, open_files
from agspec.replay.render import GENERATION, ToolWire, render_message, render_output, render_tools
from agspec.replay.trace import Call, Trace
from agspec.scaffold import Profiles, Scaffold, load_profiles
from agspec.tokens import Tokenizer, Tokens


@dataclass(frozen=True, eq=False)
class PlannedCall:
    """One call: ``prompt`` and ``tape`` (the recorded output and the end-of-turn token) are int32 [n].

    ``uncut`` is the whole prompt where ``prompt`` was cut to fit.
    """

    session: str
    role: Role
    scaffold: str
    prompt: Tokens
    tape: Tokens
    files: tuple[OpenFile, ...]
    uncut: Tokens | None = None

    def shortened(self, tokens: int) -> PlannedCall:
        """The same call with a tape of at most ``tokens``, its last token kept."""
        return replace(self, tape=_cut_tape(self.tape, tokens))


@dataclass
class Planner:
    """Turns calls into planned calls; each distinct message is rendered and tokenised once.

    ``max_tokens`` cuts each tape. ``context_limit``: tokens that prompt and tape may have together; a longer prompt
    keeps its head (a quarter of the room) and its tail, see ``fit``.
    """

    tokenizer: Tokenizer
    tool_wire: ToolWire
    profiles: Profiles = field(default_factory=load_profiles)
    max_tokens: int | None = None
    context_limit: int | None = None
    _messages: dict[Message, Tokens] = field(default_factory=dict)
    _files: dict[tuple[str, tuple[Form, ...], Message], tuple[OpenFile, ...]] = field(default_factory=dict)

    def calls(self, trace: Trace) -> Iterator[PlannedCall]:
        """The calls of ``trace`` in order; one whose output is empty is left out, for nothing is decoded in it."""
        for call in trace.calls:
            planned = self._call(call)
            if planned.tape.size:
                yield planned

    def _call(self, call: Call) -> PlannedCall:
        match = self.profiles.classify(call.messages, tools=[tool_name(tool) for tool in call.tools])
        forms = match.forms(self.tool_wire)
        parts = [self._message(message) for message in call.messages]
        if call.tools:
            parts.insert(0, self.tokenizer.encode(render_tools(call)))
        prompt = np.concatenate([*parts, self.tokenizer.encode(GENERATION)])
        tape = self.tokenizer.encode(render_output(call.output, self.tool_wire))[: self.max_tokens]
        tape = np.append(tape, np.int32(self.tokenizer.end_id)) if tape.size else tape
        uncut = None
        if self.context_limit is not None:
            tape = _cut_tape(tape, self.context_limit // 2)
            whole, prompt = prompt, fit(prompt, self.context_limit - int(tape.size))
            uncut = whole if whole.size > prompt.size else None
        files = tuple(file for message in call.messages for file in self._opened(match.scaffold, forms, message))
        return PlannedCall(call.session, call.role or match.role, match.scaffold.name, prompt, tape, files, uncut)

    def _message(self, message: Message) -> Tokens:
        if message not in self._messages:
            self._messages[message] = self.tokenizer.encode(render_message(message, self.tool_wire))
        return self._messages[message]

    def _opened(self, scaffold: Scaffold, forms: tuple[Form, ...], message: Message) -> tuple[OpenFile, ...]:
        key = (scaffold.name, forms, message)
        if key not in self._files:
            self._files[key] = open_files(scaffold, forms, message, self.tokenizer)
        return self._files[key]


def by_session(calls: Iterable[PlannedCall], *, max_calls: int | None = None) -> list[list[PlannedCall]]:
    """The calls of each session, sessions in order of appearance; the first ``max_calls`` of each."""
    sessions: dict[str, list[PlannedCall]] = {}
    for call in calls:
        sessions.setdefault(call.session, []).append(call)
    return [calls[:max_calls] for calls in sessions.values()]


def fit(prompt: Tokens, room: int) -> Tokens:
    """``prompt`` cut to ``room`` tokens: the first quarter of the room and the prompt's tail are kept.

    >>> fit(np.arange(10, dtype=np.int32), 4).tolist()
    [0, 7, 8, 9]
    """
    if prompt.size <= room:
        return prompt
    head = room // 4
    return np.concatenate((prompt[:head], prompt[prompt.size - (room - head) :]))


def _cut_tape(tape: Tokens, room: int) -> Tokens:
    return tape if tape.size <= room else np.append(tape[: room - 1], tape[-1])
