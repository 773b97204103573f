"""Replays on a real engine: tapes are followed, and the drafts are those the simulator makes."""

import numpy as np
import pytest

from agspec.engine.phase import run_phase
from agspec.replay.methods import Agspec, NoDraft, Suffix
from agspec.replay.plan import PlannedCall, Planner, by_session
from agspec.replay.simulate import replay
from agspec.replay.trace import read_trace
from agspec.resources import data_dir
from agspec.settings import Settings
from agspec.tokens import as_tokens, load_tokenizer
from tests.engine import jobs

pytestmark = pytest.mark.engine

MAX_MODEL_LEN = 4096
SETTINGS = Settings(cost_ratio=0.07, log_drafts=True, max_draft=24, strict=True)


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer("embedded")


@pytest.fixture(scope="module")
def calls(tokenizer):
    """Two shipped sessions, five calls each; the longer prompts are cut to the window."""
    planner = Planner(tokenizer, "json", max_tokens=120, context_limit=MAX_MODEL_LEN - 1)
    sessions = by_session(planner.calls(read_trace(data_dir("replays") / "mini-swe-agent-own.jsonl.gz")), max_calls=5)
    return [call for session in sessions for call in session]


@pytest.fixture(scope="module")
def last(calls):
    """A call that writes its prompt's last tokens again, up to the last token the context has."""
    text = np.concatenate([call.prompt for call in calls])[: MAX_MODEL_LEN - 61]
    tape = as_tokens([*text[-59:], calls[0].tape[-1]])
    return PlannedCall("last", "coder", "generic", as_tokens(text), tape, ())


@pytest.fixture(scope="module")
def engine(calls, last):
    return run_phase(jobs.taped, [("", by_session(calls))], last, SETTINGS, MAX_MODEL_LEN)


@pytest.mark.parametrize("method", ["none", "suffix", "agspec", "two rows"])
def test_tapes_are_followed(engine, calls, method):
    run = engine[method]["run"]
    assert run.tape_followed
    assert run.num_tokens == sum(int(call.tape.size) for call in calls)


def test_drafts_equal_the_simulators_token_for_token(engine, calls, tokenizer):
    method = Agspec(SETTINGS, tokenizer)
    log = []
    tally = replay(method, calls, max_draft=24, context_limit=MAX_MODEL_LEN, log=log)
    made = [draft.tolist() for draft in log]
    assert len(made) > 100
    assert engine["agspec"]["drafts"] == made
    assert engine["agspec"]["errors"] == {}
    run = engine["agspec"]["run"]
    assert (run.num_steps, run.num_drafts) == (tally.num_steps, tally.num_drafts)
    assert (run.num_draft_tokens, run.num_accepted_tokens) == (tally.num_draft_tokens, tally.num_accepted_tokens)


def test_A8_suffix_baseline_equals_vllms_own(engine, calls):
    tally = replay(Suffix(SETTINGS), calls, max_draft=24, context_limit=MAX_MODEL_LEN)
    run = engine["suffix"]["run"]
    assert (run.num_steps, run.num_draft_tokens) == (tally.num_steps, tally.num_draft_tokens)


def test_without_drafts_every_token_is_a_step(engine):
    run = engine["none"]["run"]
    assert run.num_steps == run.num_tokens
    assert run.num_drafts == 0


@pytest.mark.parametrize("name", ["none", "suffix", "agspec"])
def test_near_the_contexts_end_nothing_is_verified_but_drafts(engine, last, tokenizer, name):
    """vLLM 0.32 verifies zeros in every row there, see patches.draft_to_the_limit."""
    run = engine[f"{name} to the limit"]["run"]
    method = {"none": NoDraft(), "suffix": Suffix(SETTINGS), "agspec": Agspec(SETTINGS, tokenizer)}
    tally = replay(method[name], [last], max_draft=24, context_limit=MAX_MODEL_LEN)
    assert run.tape_followed
    assert (run.num_draft_tokens, run.num_accepted_tokens) == (tally.num_draft_tokens, tally.num_accepted_tokens)
    assert (run.num_accepted_tokens > 40) == (name != "none")


def test_A9_drafts_that_are_accepted_in_part_are_among_them(engine):
    """Recorded edits have both: whole drafts, and such as part from what came at the border of an edit."""
    run = engine["agspec"]["run"]
    assert run.num_drafts < run.num_accepted_tokens < run.num_draft_tokens


def test_E3_a_closed_loop_lets_no_call_queue(engine, calls):
    """As many sessions as rows, the next call when the last is over: a call waits for no other."""
    for method in ("agspec", "two rows"):
        run = engine[method]["run"]
        assert run.num_calls == len(calls)
        assert 0 < run.queue_s < 0.1 * run.wall_s


def test_E6_every_method_finds_the_same_in_the_prefix_cache(engine):
    """What a session's own earlier calls left there, but for the block that a draft's last tokens may fill; nothing of
    another method's run, which would be all of the prompts.
    """
    found = [engine[method]["run"].num_cached_tokens for method in ("agspec", "none", "suffix")]
    assert min(found) > 0
    assert max(found) < 1.05 * min(found)
