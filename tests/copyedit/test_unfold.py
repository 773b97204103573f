"""A program unfolded piece by piece gives what resolving it whole gives, as soon as it is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agspec.copyedit.program import Copy, Gen, Span, show
from agspec.copyedit.resolve import resolve
from agspec.copyedit.source import Source
from agspec.copyedit.unfold import Unfolding
from agspec.errors import CopyError

SOURCES = [Source(b"a\nbb\nccc"), Source("é\n".encode())]
texts = st.lists(st.sampled_from([b"x", b"</gen>", b"</\\gen>", b"<", b"</", b"\\", b"<copy", b"\xff"]), max_size=6)
operations = st.one_of(
    st.sampled_from([Copy(1, 3), Copy(2, 2), Copy(1, 1, file=2), Span((1, 0), (3, 2))]), texts.map(b"".join).map(Gen)
)


@given(st.lists(operations, max_size=6).map(tuple), st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_any_cutting_gives_the_same_text(program, sizes):
    text = show(program)
    unfolding = Unfolding(SOURCES)
    out, at, i = b"", 0, 0
    while at < len(text):
        size = sizes[i % len(sizes)]
        out += unfolding.feed(text[at : at + size])
        at, i = at + size, i + 1
    assert out == resolve(program, SOURCES)
    assert unfolding.whole
    assert unfolding.program == text


def test_text_comes_as_it_is_known_and_an_end_tag_is_held_back():
    unfolding = Unfolding(SOURCES)
    assert unfolding.feed(b"<gen>ab") == b"ab"
    assert unfolding.feed(b"c</ge") == b"c"
    assert unfolding.feed(b"x</\\gen") == b"</gex"
    assert unfolding.feed(b">") == b"</gen>"
    assert not unfolding.whole
    assert unfolding.feed(b'</gen><copy lines="1-2"/') == b""
    assert unfolding.feed(b">") == b"a\nbb\n"


def test_what_is_no_program_is_an_error_with_its_place():
    unfolding = Unfolding(SOURCES)
    unfolding.feed(b"<gen>x</gen>")
    with pytest.raises(CopyError, match="program byte 12: want <copy"):
        unfolding.feed(b"y")
