"""The grammar's texts in the engines that read them: vLLM's xgrammar and guidance backends."""

from __future__ import annotations

import random

import pytest

from agspec.copyedit.grammars import digits, ebnf, lark
from agspec.copyedit.program import Copy, Gen, parse, show
from agspec.copyedit.source import Source
from agspec.errors import CopyError

pytestmark = pytest.mark.engine
SETS = [[Source(b"x\n" * 3)], [Source(b"x\n" * 25), Source(b"y\n" * 7)], [Source(b"")]]
TEXTS = ["", "a", "</gen", "</ge</gen", "<</", "</\\gen>", '<copy lines="1-1"/>', "é漢\n"]


def programs(rng: random.Random, sources: list[Source], number: int) -> list[str]:
    """Programs, some with one piece changed."""
    found = []
    for _ in range(number):
        text = ""
        for _ in range(rng.randint(0, 3)):
            if rng.random() < 0.5:
                text += f"<gen>{rng.choice(TEXTS)}</gen>"
            else:
                text += show((Copy(rng.randint(1, 30), rng.randint(1, 30), rng.randint(1, 3)),)).decode()
        if text and rng.random() < 0.3:
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(["", "<", '"', "0", "x"]) + text[at + 1 :]
        found.append(text)
    return found


def allowed(text: str, sources: list[Source]) -> bool:
    """What the texts promise: the language but for ``i <= j`` and the lines of each file."""
    try:
        program = parse(text.encode())
    except CopyError:
        return False
    most = max(source.num_lines for source in sources)
    return all(
        isinstance(one, Gen)
        or (isinstance(one, Copy) and max(one.first, one.last) <= most and one.file <= len(sources)
            and (len(sources) > 1 or "file=" not in text))
        for one in program
    )  # fmt: skip


@pytest.mark.parametrize("sources", SETS, ids=["one", "two", "empty"])
def test_xgrammar_takes_what_the_text_promises(sources):
    from xgrammar.testing import _is_grammar_accept_string

    rng = random.Random(1)
    outcomes = set()
    for text in programs(rng, sources, 300):
        outcome = allowed(text, sources)
        assert _is_grammar_accept_string(ebnf(sources), text) == outcome, text
        outcomes.add(outcome)
    assert outcomes == {True, False}


@pytest.mark.parametrize("sources", SETS, ids=["one", "two", "empty"])
def test_guidance_takes_what_the_text_promises(sources):
    import llguidance

    from agspec.tokens import load_tokenizer

    backend = load_tokenizer("embedded").backend
    tokenizer = llguidance.LLTokenizer(backend.to_str())
    rng = random.Random(2)
    outcomes = set()
    for text in programs(rng, sources, 150):
        matcher = llguidance.LLMatcher(tokenizer, llguidance.LLMatcher.grammar_from_lark(lark(sources)))
        assert not matcher.get_error()
        tokens = tokenizer.tokenize_str(text)
        outcome = matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()
        assert outcome == allowed(text, sources), text
        outcomes.add(outcome)
    assert outcomes == {True, False}


@pytest.mark.parametrize("most", [1, 9, 10, 25, 99, 100, 234, 1000])
def test_numbers_are_bounded_by_their_digits(most):
    import re

    pattern = re.compile("|".join("".join(classes) for classes in digits(most)))
    for number in range(1200):
        assert bool(pattern.fullmatch(str(number))) == (1 <= number <= most)
