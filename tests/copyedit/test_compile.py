"""Compiling edits: exact for any bytes, as cheap as a slow twin finds, moves and repeats found, fast on long files."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agspec.copyedit.compile import Cost, compile_edit
from agspec.copyedit.matching import longest_runs
from agspec.copyedit.program import Copy, Gen, Span, parse, show
from agspec.copyedit.resolve import resolve
from agspec.copyedit.source import Source

PIECES = [b"a\n", b"b\n", b"a", b"\r\n", b"\r", b"\t x \n", b"\x00", b"\xff\n", b"\n", b"\x0c", b"\xe2\x80\xa8",
          b"</gen>\n", b"</\\gen>", b'<copy lines="1-1"/>\n', b"long line of text in both files\n"]  # fmt: skip
files = st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join)
contents = st.one_of(files, st.binary(max_size=40))


def again(before: list[bytes], after: bytes, *, spans: bool) -> bytes:
    sources = [Source(data) for data in before]
    return resolve(parse(show(compile_edit(sources, after, spans=spans))), sources)


@settings(max_examples=400)
@given(st.lists(contents, min_size=1, max_size=3), contents, st.booleans())
def test_G3_compile_print_parse_resolve_is_the_identity(before, after, spans):
    assert again(before, after, spans=spans) == after


def cheapest(before: Source, after: bytes, cost: Cost) -> float:
    """By trying every copy of every length at every line."""
    lines = Source(after).lines
    best = {(len(lines), True): 0.0, (len(lines), False): 0.0}
    for i in range(len(lines) - 1, -1, -1):
        for inside in (True, False):
            options = [(0 if inside else cost.gen) + cost.text(lines[i]) + best[i + 1, True]]
            for first in range(before.num_lines):
                n = 0
                while (first + n < before.num_lines and i + n < len(lines)
                       and before.lines[first + n] == lines[i + n]):  # fmt: skip
                    n += 1
                    options.append(cost.lines(1, first + 1, first + n) + best[i + n, False])
            best[i, inside] = min(options)
    return best[0, False]


small = st.lists(st.sampled_from([b"a\n", b"bb\n", b"cccccccccccccccccccccccc\n", b"\n"]), max_size=9).map(b"".join)


@settings(max_examples=300)
@given(small, small, st.sampled_from([Cost(), Cost(gen=0, copy=1), Cost(gen=9, copy=2), Cost(digit=0, copy=8)]))
def test_no_program_of_line_copies_is_cheaper(before, after, cost):
    source = Source(before)
    program = compile_edit([source], after, cost=cost)
    assert cost.of(program) == pytest.approx(cheapest(source, after, cost))


def runs_slowly(sources, target):
    found = []
    for i in range(len(target)):
        best = 0
        for lines in sources:
            for start in range(len(lines)):
                n = 0
                while start + n < len(lines) and i + n < len(target) and lines[start + n] == target[i + n]:
                    n += 1
                best = max(best, n)
        found.append(best)
    return found


letters = st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=12)


@settings(max_examples=300)
@given(st.lists(letters, min_size=1, max_size=3), letters)
def test_longest_runs_are_those_of_a_slow_search(sources, target):
    length, place = longest_runs(sources, target)
    assert length.tolist() == runs_slowly(sources, target)
    flat = [line for lines in sources for line in [*lines, None]]
    for i, (n, at) in enumerate(zip(length, place, strict=True)):
        assert flat[at : at + n] == target[i : i + n]


def test_moved_and_repeated_lines_are_copied():
    before = b"".join(b"line number %d of the file\n" % i for i in range(30))
    lines = before.splitlines(keepends=True)
    after = b"".join([*lines[20:], *lines[:10], b"new\n", *lines[20:25]])
    assert compile_edit([Source(before)], after) == (Copy(21, 30), Copy(1, 10), Gen(b"new\n"), Copy(21, 25))


def test_what_is_shorter_generated_is_generated():
    before = b"x\ny\nz\n"
    assert compile_edit([Source(before)], b"x\n") == (Gen(b"x\n"),)
    assert compile_edit([Source(b"")], b"") == ()


def test_a_last_line_without_its_end_is_no_copy_of_one_with_it():
    assert again([b"a long line that would be worth a copy"], b"a long line that would be worth a copy\n", spans=False)


def test_long_lines_are_copied_by_column_and_never_within_a_character():
    rng = random.Random(1)
    line = "".join(rng.choice('aé漢😀x{}[]":,') for _ in range(5000))
    before = line.encode()
    after = (line[:2000] + "NEW" + line[2003:]).encode()
    program = compile_edit([Source(before)], after, spans=True)
    assert [type(operation) for operation in program] == [Span, Gen, Span]
    assert sum(len(operation.text) for operation in program if isinstance(operation, Gen)) < 60
    for operation in program:
        resolve((operation,), [Source(before)]).decode()
    assert again([before], after, spans=True) == after


def test_ten_thousand_lines_compile_in_linear_time():
    """Under a second is in the benchmark; here only that nothing is quadratic: blank lines everywhere."""
    rng = np.random.default_rng(0)
    lines = [
        b"\n" if rng.random() < 0.3 else b"    value_%d = %d\n" % (rng.integers(500), i % 90) for i in range(10_000)
    ]
    after = [*lines[:4000], b"new\n", *lines[7000:], *lines[4000:6990]]
    started = time.process_time()
    program = compile_edit([Source(b"".join(lines))], b"".join(after))
    assert time.process_time() - started < 10
    assert len(program) < 8
    assert resolve(program, [Source(b"".join(lines))]) == b"".join(after)
