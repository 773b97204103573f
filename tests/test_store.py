"""What stores hold and for how long: sessions, tenants, files, and the pace at which text reaches them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agspec.draft.drafter import Drafter
from agspec.draft.request import Row
from agspec.draft.store import Budgets
from agspec.tokens import Tokens, as_tokens
from tests.drafting import make, step, text


def say(drafter: Drafter, request: str, tokens: Tokens, **where: Any) -> None:
    """A whole request that answers ``tokens``, one a step, on the prompt 0, 1."""
    drafter.start(request, as_tokens([0, 1]), **where)
    for i in range(tokens.size):
        drafter.propose([Row(request, np.concatenate(([0, 1], tokens[: i + 1])).astype(np.int32)[-64:], 1, 48)])
    drafter.finish(request)


def knows(drafter: Drafter, context: Any, **where: Any) -> list[int]:
    """What a new request that has just written ``context`` gets; it leaves no trace but its context."""
    drafter.start("probe", as_tokens([0]), **where)
    drafts = step(drafter, "probe", context, num_new=1)
    drafter.finish("probe")
    return drafts


# --- lifetimes ---------------------------------------------------------------------------------------------------


def test_prompt_and_output_serve_the_session() -> None:
    drafter = make()
    drafter.start("a", text(100), session="s")
    assert step(drafter, "a", [109, 110])[:3] == [111, 112, 113]
    drafter.finish("a")
    assert knows(drafter, [109, 110], session="s")[:3] == [111, 112, 113]
    assert knows(drafter, [109, 110], session="other") == [], "prompts stay in their session"


def test_a_closed_session_is_gone_but_its_outputs_are_shared() -> None:
    drafter = make()
    drafter.start("a", text(100), session="s")
    step(drafter, "a", [500])
    for i in range(1, 20):
        step(drafter, "a", text(500, i + 1))
    drafter.finish("a")
    drafter.close_session("s")
    assert knows(drafter, [109, 110], session="s") == []
    assert knows(drafter, [504, 505], session="s")[:3] == [506, 507, 508]
    drafter.close_session("never opened")


def test_closing_drops_what_is_still_on_its_way() -> None:
    drafter = make(budgets=Budgets(tokens_per_step=64))
    drafter.remember("s", text(100, 500))
    drafter.remember("t", text(700, 50))
    drafter.close_session("s")
    assert drafter.intake.num_waiting_tokens == 50


def test_a_request_without_session_is_forgotten_but_for_its_output() -> None:
    drafter = make()
    drafter.start("a", text(100))
    assert step(drafter, "a", [109, 110])[:2] == [111, 112]
    for i in range(1, 9):
        step(drafter, "a", text(500, i))
    drafter.finish("a")
    assert knows(drafter, [119, 120]) == []
    assert knows(drafter, [502, 503])[:2] == [504, 505]


def test_the_longest_unused_session_goes_first() -> None:
    drafter = make(budgets=Budgets(tokens_per_step=100_000, sessions=3))
    for i, name in enumerate("abc"):
        drafter.remember(name, text(100 * (i + 1)))
    drafter.intake.step()
    assert knows(drafter, [110, 111], session="a")[:1] == [112]
    drafter.remember("d", text(500))
    drafter.intake.step()
    assert knows(drafter, [110, 111], session="a")[:1] == [112], "used after b and c"
    assert knows(drafter, [510, 511], session="d")[:1] == [512]
    assert knows(drafter, [210, 211], session="b") == []


def test_the_longest_unused_tenant_goes_first() -> None:
    drafter = make(budgets=Budgets(tokens_per_step=100_000, tenants=2))
    for i, tenant in enumerate("xyz"):
        drafter.open_file(tenant, "f", [text(100 * (i + 1))])
        drafter.intake.step()
    assert knows(drafter, [310, 311], tenant="z")[:1] == [312]
    assert knows(drafter, [210, 211], tenant="y")[:1] == [212]
    assert knows(drafter, [110, 111], tenant="x") == []


def test_a_file_is_taken_in_once() -> None:
    drafter = make()
    drafter.open_file("", ("f", 1), [text(100), text(300)])
    drafter.open_file("", ("f", 1), [text(100), text(300)])
    assert drafter.intake.num_waiting_tokens == 80
    assert knows(drafter, [110, 111]) != []
    assert knows(drafter, [310, 311]) != []


def test_stores_that_are_not_enabled_are_not_looked_up() -> None:
    drafter = make(enabled=("shared",))
    drafter.start("a", text(100), session="s")
    assert step(drafter, "a", [109, 110]) == []
    assert set(drafter.counts.num_lookups) <= {"shared"}


# --- tenants -----------------------------------------------------------------------------------------------------

EVENTS = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from(["say", "read", "file", "ask", "close"]), st.integers(0, 8)),
    min_size=4,
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(EVENTS)
def test_tenants_never_leak(events: list[tuple[str, str, int]]) -> None:
    """A's own tokens are 200 to 499, B's 500 to 799; both also write 0 to 9, so that contexts meet."""
    drafter = make()
    own = {"A": range(200, 500), "B": range(500, 800)}
    for number, (tenant, what, at) in enumerate(events):
        body = np.stack((np.full(30, at % 3), np.arange(30) + own[tenant].start + 30 * at), 1).reshape(-1)
        tokens = body.astype(np.int32)
        if what == "say":
            say(drafter, f"r{number}", tokens[:12], tenant=tenant, session="s" if at % 2 else None)
        elif what == "read":
            drafter.remember("s", tokens, tenant=tenant)
        elif what == "file":
            drafter.open_file(tenant, at, [tokens])
        elif what == "close":
            drafter.close_session("s", tenant=tenant)
        for asking in "AB":
            for context in ([at % 3], tokens[:9].tolist(), [0, 1]):
                other = own["B" if asking == "A" else "A"]
                found = knows(drafter, context, tenant=asking, session="s")
                assert not set(found) & (set(other) - set(context)), (asking, context)


# --- intake ------------------------------------------------------------------------------------------------------


def test_intake_keeps_order_and_pace() -> None:
    drafter = make(budgets=Budgets(tokens_per_step=100))
    drafter.open_file("", "f", [text(100, 150)])
    drafter.open_file("", "g", [text(600, 120)])
    assert drafter.intake.num_waiting_tokens == 270
    assert knows(drafter, [300]) == []
    assert drafter.intake.num_waiting_tokens == 71, "270 and what the probe brought, less two steps"
    assert knows(drafter, [110, 111])[:1] == [112]


def test_intake_step_counts_what_went() -> None:
    drafter = make(budgets=Budgets(tokens_per_step=100))
    drafter.open_file("", "f", [text(100, 150), text(600, 120)])
    moved = [drafter.intake.step() for _ in range(4)]
    assert moved == [100, 100, 70, 0]
    assert drafter.intake.num_waiting_tokens == 0
    assert knows(drafter, [198, 199])[:2] == [200, 201], "a text taken in by two steps is one text"


def test_intake_beside_the_engine_shows_the_same_and_tells_what_broke() -> None:
    drafter = make(budgets=Budgets(tokens_per_step=100))
    drafter.open_file("", "f", [text(100, 150)])
    drafter.intake.begin()
    drafter.intake.wait()
    assert drafter.intake.num_waiting_tokens == 50
    drafter.intake.take_in()
    assert drafter.intake.num_waiting_tokens == 50, "that step was this one's"
    drafter.intake.take_in()
    assert drafter.intake.num_waiting_tokens == 0

    def broken() -> int:
        raise ValueError("full")

    drafter.open_file("", "g", [text(600, 150)])
    drafter.intake.step = broken  # type: ignore[method-assign]
    drafter.intake.begin()
    drafter.remember("s", text(10))
    with pytest.raises(ValueError, match="full"):
        drafter.intake.take_in()


def test_ten_thousand_sessions_opened_and_dropped_leave_nothing() -> None:
    drafter = make(budgets=Budgets(session=1 << 20, sessions=4, tokens_per_step=100_000))
    for i in range(10_000):
        name = f"r{i}"
        drafter.start(name, text(i % 500, 4), session=f"s{i}")
        if i % 100 == 0:
            drafter.propose([Row(name, text(i % 500, 4), 1, 8)])
        drafter.finish(name)
        if i % 3 == 0:
            drafter.close_session(f"s{i}")
    drafter.intake.take_all()
    assert drafter.requests == []
    assert len(drafter.homes.sessions) <= 4
    assert drafter.intake.num_waiting_tokens == 0
