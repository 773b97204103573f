"""The grammar over tokens, for every tokenizer at hand."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from agspec.copyedit.machine import START, Machine
from agspec.copyedit.program import Copy, Gen, Span, parse, show
from agspec.copyedit.resolve import resolve
from agspec.copyedit.source import Source
from agspec.copyedit.token_machine import TokenMachine, Vocabulary, alternatives
from agspec.copyedit.vocabulary import token_bytes
from agspec.errors import CopyError, InputError
from agspec.tokens import Tokenizer, load_tokenizer
from tests.support import SHARED

TOKENIZERS = ["embedded", *sorted((SHARED / "tokenizers").glob("*.json"))]
SOURCES = [Source(b"".join(b"line %d\n" % i for i in range(1, 121))), Source(b""), Source(b"x\n" * 9)]


@pytest.fixture(scope="module", params=TOKENIZERS, ids=lambda path: Path(path).name)
def vocabulary(request):
    return Vocabulary(load_tokenizer(request.param))


@pytest.fixture(scope="module")
def embedded():
    return Vocabulary(load_tokenizer("embedded"))


def test_token_bytes_are_what_the_tokenizer_decodes(vocabulary):
    tokenizer = vocabulary._tokenizer
    for text in ("def f(x):\n\treturn 'é漢😀'\r\n", '  <copy lines="1-2"/>', "\x00\x0b\u2028"):
        tokens = tokenizer.encode(text).tolist()
        assert b"".join(vocabulary.texts[token] or b"" for token in tokens).decode() == tokenizer.decode(tokens)
    assert all(vocabulary.texts[token] is None for token in tokenizer.special_ids)


def test_a_program_in_the_tokenizers_own_tokens_is_accepted(vocabulary):
    """Tags and numbers; what stands in text may be any tokens."""
    machine = TokenMachine(Machine(SOURCES), vocabulary)
    for word in (b'<copy lines="', b'<copy file="', b'<copy span="', b"<gen>"):
        state = START
        for token in vocabulary.encode(word):
            assert machine.mask(state)[token]
            following = machine.advance(state, token)
            assert following is not None
            state = following
        assert state.kind in ("first", "file", "line", "text")


def test_every_mask_is_what_the_bytes_allow(vocabulary):
    """No token is allowed that the byte grammar refuses, and at least one always is."""
    machine = TokenMachine(Machine(SOURCES), vocabulary)
    rng = random.Random(3)
    for _ in range(12):
        state, text = START, b""
        for _ in range(60):
            mask = machine.mask(state)
            choices = np.flatnonzero(mask)
            assert choices.size
            token = int(choices[rng.randrange(choices.size)])
            if token == vocabulary.end:
                assert state == START
                continue
            piece = vocabulary.texts[token]
            assert piece
            following = machine.advance(state, token)
            assert following == machine.machine.run(piece, state) is not None
            state, text = following, text + piece
        for token in machine.closing(state):
            following = machine.advance(state, token)
            assert following is not None
            state, text = following, text + (vocabulary.texts[token] or b"")
        assert state == START
        resolve(parse(text), SOURCES)


def test_programs_become_tokens_that_may_come(vocabulary):
    machine = TokenMachine(Machine(SOURCES), vocabulary)
    for program in (
        (),
        (Copy(1, 120), Gen("new é漢\n".encode()), Copy(7, 9, file=3), Gen(b""), Gen(b"</gen>"), Span((1, 0), (20, 3))),
    ):
        tokens = machine.tokens_of(show(program))
        assert tokens[-1] == vocabulary.end
        state = START
        for token in tokens[:-1]:
            following = machine.advance(state, token)
            assert following is not None
            state = following
        assert vocabulary.bytes_of(tokens[:-1]) == show(program)
    with pytest.raises(CopyError, match="program byte 13: want a program over these sources, got '121'"):
        machine.tokens_of(b'<copy lines="121-121"/>')
    with pytest.raises(CopyError, match="program byte 0: want a program over these sources, got 'x'"):
        machine.tokens_of(b"x")


def test_the_copy_that_a_token_closes_is_known_before_it(vocabulary):
    machine = TokenMachine(Machine(SOURCES), vocabulary)
    for copy in (Copy(3, 12), Copy(120, 120), Copy(9, 9, file=3), Span((2, 1), (2, 6))):
        state = START
        for token in machine.tokens_of(show((copy,)))[:-1]:
            before = state
            following = machine.advance(state, token)
            assert following is not None
            state = following
        assert machine.copy_of(before) == copy


def test_tags_cost_few_tokens(embedded):
    machine = TokenMachine(Machine(SOURCES, spans=False), embedded)
    assert alternatives(machine.machine, START) == [b'<copy file="', b'<copy lines="', b"<gen>"]
    assert alternatives(machine.machine, machine.machine.run(b'<copy lines="7-12')) == [b'"/>']
    assert machine.mask(START).sum() == 2, "the tag's first token, and the end of the turn"
    state = machine.machine.run(b'<copy lines="7-12')
    after = machine.advance(state, embedded.first(b'"/>'))
    assert after == START, "a copy is closed in one token"


def test_text_takes_nearly_every_token_and_ends_at_its_tag_only(embedded):
    machine = TokenMachine(Machine(SOURCES), embedded)
    state = machine.machine.run(b"<gen>")
    free = machine.mask(state)
    assert free.sum() > 0.99 * len(embedded.texts)
    assert not free[embedded.end]
    closing = machine.mask(machine.machine.run(b"<gen>a</gen"))
    assert closing[embedded.first(b">")]
    assert not closing[embedded.first(b">\n")] or embedded.texts[embedded.first(b">\n")] == b">"


def test_an_unknown_kind_of_decoder_is_one_line(embedded):
    known = embedded._tokenizer
    other = Tokenizer("odd", known.backend, {**known.spec, "decoder": {"type": "WordPiece"}})
    with pytest.raises(InputError, match="tokenizer odd: want a byte-level or byte-fallback decoder, got WordPiece"):
        token_bytes(other)
