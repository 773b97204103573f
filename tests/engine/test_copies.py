"""Copy programs on the real engine: spliced as the reference way decodes them, whatever else the engine does."""

from __future__ import annotations

import pytest

from agspec.copyedit.program import Copy, Gen, parse
from agspec.copyedit.resolve import resolve
from agspec.copyedit.source import Source
from agspec.engine.phase import run_phase
from tests.engine import copy_jobs

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def outcome():
    return run_phase(copy_jobs.copies)


def sizes(program: bytes, source: str) -> int:
    return len(resolve(parse(program), [Source(source.encode())]))


@pytest.mark.parametrize("method", ["none", "agspec"])
@pytest.mark.parametrize("i", [0, 1])
def test_the_splice_gives_the_references_program_and_context(outcome, method, i):
    """Same tokens, and at the end the worker holds prompt, program and copied text, in float32."""
    found, reference = outcome[method][i], outcome["reference"][i]
    assert found["done"]
    assert found["tokens"] == reference["tokens"]
    whole = reference["context"]
    assert found["context"] == whole[: len(found["context"])]
    assert len(whole) - len(found["context"]) <= 48, "but for what the last step brought"
    assert sizes(found["program"], copy_jobs.FILES[i]) > 0


def test_some_programs_copy(outcome):
    assert sum(found["splices"] for found in outcome["none"]) > 0
    assert sum(isinstance(one, Copy) for found in outcome["none"] for one in parse(found["program"])) == sum(
        found["splices"] for found in outcome["none"]
    )


def test_edits_run_beside_each_other_and_ordinary_requests(outcome):
    assert [found["tokens"] for found in outcome["batch"]] == [found["tokens"] for found in outcome["none"]]
    assert outcome["ordinary"]["beside"] == outcome["ordinary"]["alone"]


def test_sampled_programs_resolve_and_none_ends_inside_a_tag(outcome):
    assert len({found["program"] for found in outcome["sampled"]}) > 6
    for found in outcome["sampled"]:
        assert found["done"], found["program"]
        assert sizes(found["program"], found["source"]) >= 0


@pytest.mark.parametrize("method", ["none", "agspec"])
def test_copies_beyond_a_steps_budget_are_spliced_in_several(outcome, method):
    found = outcome[f"long {method}"]
    assert found["tokens"] == outcome["tape"]
    text = resolve(parse(found["program"]), [Source(copy_jobs.LONG.encode())])
    assert text == copy_jobs.CHANGED.encode()
    assert found["splices"] == 2
    assert found["steps"] <= len(found["tokens"])


def test_D6_drafts_walk_the_grammar_and_shorten_programs(outcome):
    assert outcome["long agspec"]["steps"] < outcome["long none"]["steps"]


def test_preempted_edits_end_as_they_should(outcome):
    assert outcome["preempted"] > 0
    for found in outcome["pair"]:
        assert found["tokens"] == outcome["tape"]
        assert found["done"]


def test_an_edit_left_in_a_splice_leaves_nothing_behind(outcome):
    assert outcome["after abort"] == {"requests": 0, "running": 0, "unfinished": False}


def test_a_full_context_ends_the_program_and_says_so(outcome):
    found = outcome["full"]
    assert (found["stopped"], found["done"]) == ("length", False)
    assert found["splices"] > 2


def test_a_loop_of_copies_ends_at_its_cap(outcome):
    found = outcome["capped"]
    assert found["done"]
    copied = [one for one in parse(found["program"]) if not isinstance(one, Gen)]
    texts = [len(resolve((one,), [Source(copy_jobs.SHORT.encode())])) for one in copied]
    assert sum(texts[:-1]) <= 100 < len(copy_jobs.SHORT), "once past the cap, no further copy"
