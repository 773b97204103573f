"""Shared by the tests of the simulator: a tokenizer of words, calls with much to find again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tokenizers

from agspec.opened import OpenFile
from agspec.replay.methods import METHODS
from agspec.replay.plan import PlannedCall
from agspec.tokens import Tokenizer, Tokens, as_tokens
from tests.support import needs_arctic

END = 99
EVERY = [
    pytest.param(name, marks=needs_arctic) if name in ("suffix", "agspec-suffix") else name for name in sorted(METHODS)
]


def make_tokenizer() -> Tokenizer:
    """Words 0 to 98, and the end of a turn."""
    model = tokenizers.models.WordLevel({str(i): i for i in range(END)}, unk_token="0")
    backend = tokenizers.Tokenizer(model)
    backend.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    backend.add_special_tokens(["<|im_end|>"])
    spec = {"added_tokens": [{"id": END, "content": "<|im_end|>", "special": True}], "model": {}}
    return Tokenizer("words", backend, spec)


def call(prompt: Any, tape: Any, *, session: str = "s", role: Any = "coder", files: Any = ()) -> PlannedCall:
    return PlannedCall(session, role, "generic", as_tokens(prompt), as_tokens(tape), tuple(files))


def random_calls(seed: int, n: int = 12) -> list[PlannedCall]:
    """Calls that resend their history, open files and repeat themselves."""
    rng = np.random.default_rng(seed)
    files = [OpenFile((f"f{i}", str(i)), (rng.integers(0, 98, 80).astype(np.int32),)) for i in range(3)]
    history: dict[str, Tokens] = {}
    calls = []
    for i in range(n):
        session = f"s{i % 3}"
        file = files[int(rng.integers(3))]
        at = int(rng.integers(40))
        before = history.get(session, as_tokens([i]))
        prompt = np.concatenate((before, rng.integers(0, 98, 30), file.forms[0] if i % 2 else as_tokens([])))
        answer = np.concatenate((rng.integers(0, 98, 5), file.forms[0][at : at + 40], before[-20:], [END]))
        role = "coder" if i % 4 else "chat"
        calls.append(call(prompt.astype(np.int32), answer.astype(np.int32), session=session, role=role, files=[file]))
        history[session] = np.concatenate((calls[-1].prompt, calls[-1].tape))
    return calls
