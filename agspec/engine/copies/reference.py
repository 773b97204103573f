"""The reference way to decode a copy program: a fresh request for each primitive, with prefix caching, no splice.

Slower by the last partial block and a prefill's overhead a primitive, and needs nothing of the scheduler: what the
splice is tested against.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agspec.copyedit.program import Gen, parse
from agspec.copyedit.resolve import written
from agspec.copyedit.token_machine import Vocabulary
from agspec.engine.copies.request import CopyRequest


def decode(
    llm: Any, prompt: Sequence[int], request: CopyRequest, vocabulary: Vocabulary
) -> tuple[list[int], list[int]]:
    """(the program's tokens with its end, all tokens of the context: prompt, program and copied text)."""
    from vllm import TokensPrompt

    sources = request.files
    program: list[int] = []
    context = list(prompt)
    while True:
        left = request.max_tokens - len(program)
        asked = request.model_copy(update={"single": True, "max_tokens": left})
        (output,) = llm.generate(TokensPrompt(prompt_token_ids=list(context)), asked.sampling(), use_tqdm=False)
        tokens = [token for token in output.outputs[0].token_ids if token != vocabulary.end]
        if not tokens:
            return [*program, vocabulary.end], context
        program += tokens
        context += tokens
        (operation,) = parse(vocabulary.bytes_of(tokens))
        if not isinstance(operation, Gen):
            context += vocabulary.encode(written(operation, sources))
