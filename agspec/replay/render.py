"""Messages -> the text a model reads, and outputs -> the text it writes, where no chat template is at hand.

ChatML frames (Qwen, SmolLM2). A tool call is written as one of two wires: ``json`` (Hermes, Qwen2.5) or ``raw``
(Qwen3-Coder); see ``render_tool_call``.
"""

from __future__ import annotations

import json
from typing import Literal

from agspec.replay.trace import Call, Message, Output, ToolCall

ToolWire = Literal["json", "raw"]
GENERATION = "<|im_start|>assistant\n"
END = "<|im_end|>"


def render_tool_call(call: ToolCall, wire: ToolWire) -> str:
    """One tool call as the model writes it; arguments that are not a JSON object are written as they are.

    >>> print(render_tool_call(ToolCall(name="bash", arguments='{"command": "ls"}'), "json"))
    <BLANKLINE>
    <tool_call>
    {"name": "bash", "arguments": {"command": "ls"}}
    </tool_call>
    """
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = None
    if wire == "json":
        body = call.arguments if arguments is None else json.dumps(arguments, ensure_ascii=False)
        name = json.dumps(call.name, ensure_ascii=False)
        return f'\n<tool_call>\n{{"name": {name}, "arguments": {body}}}\n</tool_call>'
    if not isinstance(arguments, dict):
        arguments = {"arguments": call.arguments}
    values = {k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in arguments.items()}
    body = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    return f"\n<tool_call>\n<function={call.name}>\n{body}</function>\n</tool_call>"


def render_output(output: Output, wire: ToolWire) -> str:
    """What the model wrote: reasoning in think tags, text, tool calls."""
    thought = f"<think>\n{output.reasoning}\n</think>\n\n" if output.reasoning else ""
    return thought + output.content + "".join(render_tool_call(call, wire) for call in output.tool_calls)


def render_message(message: Message, wire: ToolWire) -> str:
    """One message in its ChatML frame."""
    calls = "".join(render_tool_call(call, wire) for call in message.tool_calls)
    return f"<|im_start|>{message.role}\n{message.content}{calls}{END}\n"


def render_tools(call: Call) -> str:
    """The tools offered, as one more system text; empty without tools."""
    if not call.tools:
        return ""
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in call.tools)
    return f"<|im_start|>system\n# Tools\n\n<tools>\n{lines}\n</tools>{END}\n"
