"""Drafting never changes output: a real vLLM in float32, with and without agspec."""

import json
from collections import Counter

import pytest
from scipy.stats import chi2_contingency

from agspec.engine.phase import run_phase
from agspec.engine.verify import LOGIT_GAP
from tests.engine import jobs

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def plain():
    return run_phase(jobs.free_running, False)


@pytest.fixture(scope="module")
def drafted():
    return run_phase(jobs.free_running, True)


def same_or_tied(want, got, gaps):
    """Equal, or parted first where the two best logits are closer than LOGIT_GAP."""
    part = next((i for i in range(len(want)) if want[i] != got[i]), None)
    return part is None or gaps[part] < LOGIT_GAP


def test_drafts_were_made_and_accepted(drafted):
    stats = drafted["stats"]
    assert stats["num_accepted_tokens"] > 500
    assert stats["num_draft_tokens"] > stats["num_accepted_tokens"]
    assert stats["errors"] == {}


@pytest.mark.parametrize("prompt", range(len(jobs.TEXTS)))
@pytest.mark.parametrize("batch", ["one", "four"])
def test_C1_C8_greedy_tokens_are_the_same(plain, drafted, batch, prompt):
    want, got = plain[batch][prompt], drafted[batch][prompt]
    assert len(want) == len(got) == 300
    assert same_or_tied(want, got, plain["gaps"][prompt])


def test_stop_strings_cut_at_the_same_place(plain, drafted):
    assert drafted["stop"] == plain["stop"]
    assert any(reason == "stop" and isinstance(text, str) for _, reason, text in plain["stop"])


def test_A1_max_model_len_reached_mid_draft(plain, drafted):
    assert drafted["ceiling"] == plain["ceiling"]
    assert drafted["ceiling_reasons"] == ["length"]
    assert drafted["ceiling_lengths"] == [jobs.CEILING]


def test_D3_json_schema_holds(plain, drafted):
    assert drafted["json"] == plain["json"]
    for text in drafted["json"]:
        value = json.loads(text)
        assert set(value) == {"name", "sizes"}
        assert len(value["sizes"]) == 8


def test_two_choices_of_one_request(plain, drafted):
    assert drafted["two"] == plain["two"]


@pytest.mark.parametrize("position", [1, 2, 3])
@pytest.mark.parametrize("way", ["plain", "top_p", "top_k"])
def test_C11_sampled_tokens_keep_their_distribution(plain, drafted, way, position):
    """Tokens 2 to 4 of 120 samples at temperature 1 are verified against drafts; chi-square finds no difference."""
    columns = [Counter(tokens[position] for tokens in run["sampled"][way]) for run in (plain, drafted)]
    common = [token for token in columns[0] | columns[1] if columns[0][token] + columns[1][token] >= 10]
    table = [[column[token] for token in common] for column in columns]
    for row, column in zip(table, columns, strict=True):
        row.append(sum(column.values()) - sum(row) + 1)
    assert len(common) >= 2
    assert chi2_contingency(table).pvalue > 1e-4
