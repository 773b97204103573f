"""The copy language: printed and read back, resolved or refused, and its grammar."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agspec.copyedit.machine import START, Machine
from agspec.copyedit.program import Copy, Gen, Operation, Span, parse, show
from agspec.copyedit.resolve import resolve, written
from agspec.copyedit.source import Source
from agspec.errors import CopyError

ODD = b"a\r\nb\r\tc \n\x00\xff\n\xe2\x80\xa8\n\x0cd\n\n</gen>\n</\\gen>e"
numbers = st.integers(1, 12)
columns = st.integers(0, 9)
operations = st.one_of(
    st.builds(Copy, numbers, numbers, st.integers(1, 3)),
    st.builds(Span, st.tuples(numbers, columns), st.tuples(numbers, columns), st.integers(1, 3)),
    st.builds(Gen, st.one_of(st.binary(max_size=12), st.sampled_from([b"</gen>", b"</\\gen>", b"<copy", b"</", b"<"]))),
)
programs = st.lists(operations, max_size=6).map(tuple)


@given(programs)
def test_what_is_printed_is_read_back(program):
    assert parse(show(program)) == program


@given(st.lists(st.sampled_from([b"a", b"</gen>", b"\\", b"</\\gen>", b"gen>", b"</", b"\xff"])).map(b"".join))
def test_any_text_can_be_generated(text):
    assert resolve(parse(show((Gen(text),))), []) == text


def test_lines_end_at_newlines_only_and_hold_them():
    source = Source(ODD)
    assert len(source.lines) == 8
    assert b"".join(source.lines) == ODD
    assert source.lines[0] == b"a\r\n"
    assert Source(b"").num_lines == 0
    assert Source(b"a\n").num_lines == 1


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.data())
def test_escaped_lines_make_a_json_string(text, data):
    """What a copy of an escaped file's lines writes is, read as JSON, those lines; the grammar agrees."""
    plain, source = Source(text.encode()), Source.escaped(text.encode())
    assert source.num_lines == plain.num_lines
    assert json.loads(b'"' + source.data + b'"') == text
    if source.num_lines:
        first = data.draw(st.integers(1, source.num_lines))
        copy = Copy(first, data.draw(st.integers(first, source.num_lines)))
        assert json.loads(b'"' + written(copy, [source]) + b'"').encode() == written(copy, [plain])
        assert Machine([source]).run(show((copy,)), START) == START


@pytest.mark.parametrize("offset", range(len(ODD) + 1))
def test_positions_are_offsets(offset):
    source = Source(ODD)
    line, column = source.position(offset)
    assert column <= source.width(line)
    assert source.offset((line, column)) == offset


def test_copies_in_any_order_and_more_than_once():
    sources = [Source(b"a\nb\n"), Source(b"c\nd")]
    program = parse(
        b'<copy lines="2-2"/><copy file="2" lines="1-2"/><gen>\n</gen><copy lines="1-2"/><copy span="1:0-2:1"/>'
    )
    assert resolve(program, sources) == b"b\nc\nd\na\nb\na\nb"
    assert resolve((), sources) == b""


WRONG = {
    b"text": (0, "want <copy"),
    b"<gen>a</gen> <gen>": (12, "want <copy"),
    b'<copy lines="1-2"': (0, "want <copy"),
    b'<copy lines="01-2"/>': (0, "want <copy"),
    b'<copy lines="1-9999999999"/>': (0, "want <copy"),
    b"<gen>a<gen>b": (0, "want </gen> after this <gen>"),
    b'<gen></gen><copy lines="1-4"/>': (11, "want lines from 1 to 3 of file 1, got 1-4"),
    b'<copy lines="3-2"/>': (0, "want a last line from 3 to 3, got 2"),
    b'<copy file="4" lines="1-1"/>': (0, "want a file from 1 to 2, got 4"),
    b'<copy file="2" lines="1-1"/>': (0, "want no copy of file 2, it is empty, got 1-1"),
    b'<copy span="1:0-4:0"/>': (0, "want lines from 1 to 3 of file 1, got line 4"),
    b'<copy span="1:3-2:0"/>': (0, "want a column from 0 to 2 in line 1 of file 1, got 3"),
    b'<copy span="2:1-2:0"/>': (0, "want a span that ends at or after its start 2:1, got the end 2:0"),
}


@pytest.mark.parametrize("text", WRONG)
def test_errors_name_the_byte_and_what_was_allowed(text):
    at, reason = WRONG[text]
    with pytest.raises(CopyError) as error:
        resolve(parse(text), [Source(b"a\nb\nc"), Source(b"")])
    assert error.value.at == at
    assert str(error.value).startswith(f"program byte {at}: {reason}")


def test_a_copy_loop_ends_in_an_error():
    program = (Copy(1, 2),) * 1000
    with pytest.raises(CopyError, match="want a program that writes at most 100 bytes, here it has 104"):
        resolve(program, [Source(b"a\nb\n")], limit=100)


def random_program(rng: random.Random) -> bytes:
    """Bytes near the language: right pieces, wrong numbers, torn tags."""
    pieces = []
    for _ in range(rng.randint(0, 4)):
        one = rng.choice([
            show((Copy(rng.randint(1, 13), rng.randint(1, 13), rng.randint(1, 4)),)),
            show((Span((rng.randint(1, 12), rng.randint(0, 8)), (rng.randint(1, 12), rng.randint(0, 8)),
                       rng.randint(1, 2)),)),
            show((Gen(rng.choice([b"", b"x\n", b"</gen>", b"</\\gen>", b"<copy"])),)),
        ])  # fmt: skip
        if rng.random() < 0.1:
            at = rng.randrange(len(one))
            one = one[:at] + bytes([rng.choice(b'<>/"-:0123 \\gx')]) + one[at + rng.randint(0, 1) :]
        pieces.append(one)
    return b"".join(pieces)


def source(rng: random.Random) -> Source:
    lines = [b"l" * rng.randint(0, 5) + b"\n" for _ in range(rng.randint(0, 12))]
    return Source(b"".join(lines) + rng.choice([b"", b"e"]))


def source_set(rng: random.Random) -> list[Source]:
    return [source(rng) for _ in range(rng.randint(1, 3))]


def resolves(text: bytes, sources: list[Source]) -> bool:
    try:
        resolve(parse(text), sources)
    except CopyError:
        return False
    return True


def test_a_hundred_thousand_random_programs_resolve_or_are_named_errors_and_the_grammar_agrees():
    rng = random.Random(5)
    outcomes = {True: 0, False: 0}
    for number in range(100_000):
        if number % 100 == 0:
            sources = source_set(rng)
            machine = Machine(sources)
        text = random_program(rng)
        outcome = resolves(text, sources)
        assert (machine.run(text) == START) == outcome, (text, [source.data for source in sources])
        outcomes[outcome] += 1
    assert min(outcomes.values()) > 10_000


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.integers(1, 400))
def test_whatever_the_grammar_allows_can_be_ended_and_resolves(seed, length):
    """A random walk through the grammar, then its closing: a program without error."""
    rng = random.Random(seed)
    sources = source_set(rng)
    machine = Machine(sources)
    state, text = START, b""
    while len(text) < length:
        forced = machine.forced(state)
        options = forced[:1] or b'<cgfls0123456789-:"/>x\\'
        choices = [byte for byte in options if machine.step(state, byte) is not None]
        if not choices:
            break
        byte = rng.choice(choices)
        following = machine.step(state, byte)
        assert following is not None
        closed: Operation | None = machine.closed(state)
        text += bytes([byte])
        if closed is not None and following == START:
            assert parse(text)[-1] == closed
            written(closed, sources)
        state = following
    text += machine.closing(state)
    resolve(parse(text), sources)


def test_D5_no_digit_is_taken_that_no_line_begins_with():
    """Digits without end were what ran a copy grammar into max_tokens."""
    machine = Machine([Source(b"a\n" * 25)])
    for text, following in ((b"2", b"-012345"), (b"25", b"-"), (b"3", b"-"), (b"7-", b"12789"), (b"7-2", b"012345")):
        state = machine.run(b'<copy lines="' + text)
        assert state is not None
        assert bytes(byte for byte in range(256) if machine.step(state, byte) is not None) == following


def test_what_is_certain_is_forced():
    machine = Machine([Source(b"a\n" * 25)], spans=False)
    assert machine.forced(START) == b"<"
    state = machine.run(b"<c")
    assert state is not None
    assert machine.forced(state) == b"opy "
    state = machine.run(b'<copy lines="25')
    assert state is not None
    assert machine.forced(state) == b'-25"/>'
    assert machine.closing(state) == b'-25"/>'
    text = machine.run(b"<gen>abc</g")
    assert text is not None
    assert machine.closing(text) == b"en>"
    assert Machine([Source(b"")]).run(b"<c") is None
    assert Machine([Source(b"")], gen=False).run(b"<") is None
