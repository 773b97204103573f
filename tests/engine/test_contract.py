"""Nothing the drafter does takes vLLM down: each line of the contract that kills an engine, on a real one."""

import pytest

pytestmark = pytest.mark.engine

COUNTED = {
    "an id outside the vocabulary": "draft",
    "a negative id": "draft",
    "a list where an array belongs": "draft",
    "too few drafts": "draft",
    "ask raises": "draft",
    "answer raises": "draft",
    "commit raises": "draft",
    "observe raises": "observe",
    "start raises": "row",
    "finish raises": "finish",
    "intake raises": "intake",
}


@pytest.mark.parametrize("way", [*COUNTED, "a draft longer than asked for", "not attached"])
def test_engine_lives_and_output_stays(outcome, way):
    assert outcome[way]["same"]


def test_A2_A8_A11_ten_thousand_random_calls_draft_legally(outcome):
    """Random stores, lengths, tokens and batch sizes; rows come, move and go."""
    told = outcome["random calls"]
    assert told["illegal"] == []
    assert told["errors"] == {}
    assert told["rows"] > 10_000
    assert told["tokens"] > 5_000


@pytest.mark.parametrize(("way", "kind"), COUNTED.items())
def test_errors_are_counted(outcome, way, kind):
    assert outcome[way]["errors"][kind] >= 1
