"""The decision: what may be drafted, how far, and how it is counted; whatever is drafted is legal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agspec.draft.caps import MAX_DRAFT, CapTable, Limits
from agspec.draft.controller import WINDOW
from agspec.draft.counts import Draft
from agspec.draft.drafter import Drafter
from agspec.draft.request import Row
from agspec.draft.store import Budgets
from agspec.tokens import EMPTY, Tokens, as_tokens
from tests.drafting import VOCABULARY, make, step, text

DARING = CapTable(Limits(floor=1e-9))


def informed(
    caps: CapTable = DARING, *, at: int = 100, size: int = 300, role: str = "other", **options: Any
) -> Drafter:
    """With a request ``a`` in flight and a text so often in the workspace that it is sure how it goes on."""
    drafter = make(caps, **options)
    drafter.open_file("", "f", [text(at, size)] * 12)
    drafter.start("a", as_tokens([1, 1, 1]), session="s", role=role)
    return drafter


# --- what may be drafted -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("barred", "want"), [((), 20), ((115,), 4), ((111,), 0), ((999, 112), 1)])
def test_C7_barred_tokens_are_neither_drafted_nor_passed(barred: tuple[int, ...], want: int) -> None:
    drafter = informed(barred=barred)
    assert step(drafter, "a", [109, 110], room=20) == list(range(111, 111 + want))


def test_ids_outside_the_vocabulary_end_a_draft() -> None:
    drafter = informed(at=980)
    assert step(drafter, "a", [994, 995]) == [996, 997, 998, 999]


@pytest.mark.parametrize("room", [0, 1, 3, 48])
def test_room(room: int) -> None:
    drafter = informed()
    assert step(drafter, "a", text(100, 30), room=room) == list(range(130, 130 + room))


def test_caps_by_role() -> None:
    caps = CapTable(Limits(cap=6, floor=0.02), {"coder": Limits(cap=20, floor=0.02), "chat": Limits(0, 0, 0)})
    lengths = {}
    for role in ("coder", "reviewer", "chat"):
        drafter = informed(caps, role=role)
        lengths[role] = len(step(drafter, "a", text(100, 30)))
    assert lengths == {"coder": 20, "reviewer": 6, "chat": 0}


def test_a_short_match_drafts_less() -> None:
    for context, want in (([5, 130], 5), ([5, 150, 151, 152], 9), (text(100, 30), 40)):
        assert len(step(informed(CapTable(Limits(cap=40, factor=2, offset=3, floor=1e-9))), "a", context)) == want


def test_no_cap_goes_beyond_what_vllm_verifies() -> None:
    """Nor when the controller raises the multiplier: drafts that are accepted whole."""
    drafter = informed(CapTable(Limits(cap=500, factor=100, floor=1e-9)), size=800)
    at, lengths = 160, []
    for _ in range(4):
        lengths.append(len(step(drafter, "a", text(100, at - 99)[-300:], num_new=1 + sum(lengths[-1:]), room=500)))
        at += 1 + lengths[-1]
    assert max(lengths) == MAX_DRAFT


def test_unknown_requests_and_empty_rows_get_nothing() -> None:
    drafter = make()
    assert drafter.propose([Row("nobody", text(1), 1, 8)]) == [None]
    drafter.finish("nobody")
    drafter.start("a", text(100), session="s")
    assert drafter.propose([Row("a", EMPTY, 0, 8)]) == [None]
    assert "a" in drafter
    assert drafter.requests == ["a"]


# --- counts ------------------------------------------------------------------------------------------------------


def test_counts_of_a_small_replay_by_hand() -> None:
    """A file holds 100 to 119; the output repeats 105 to 112 and leaves it."""
    drafter = informed(size=20, role="coder")
    output = [105, 106, 107, 108, 109, 110, 111, 112, 900, 901]
    position, new, steps, drafted, accepted = 0, 1, 0, 0, 0
    while position < len(output):
        position += new
        draft = step(drafter, "a", [1, *output[:position]], num_new=new, room=6)
        steps += 1
        right = 0
        while right < len(draft) and position + right < len(output) and draft[right] == output[position + right]:
            right += 1
        if draft and position < len(output):
            drafted, accepted = drafted + len(draft), accepted + right
        new = right + 1
    counts = drafter.counts
    assert (counts.num_draft_tokens, counts.num_accepted_tokens) == (drafted, accepted)
    assert accepted == len(output) - steps
    assert (counts.num_drafts, drafted, accepted) == (2, 12, 6), "106 to 111 right and 112 free; 113 to 118 wrong"
    for table in (counts.by_source, counts.by_role):
        for key in ("num_drafts", "num_draft_tokens", "num_accepted_tokens"):
            assert sum(row[key] for row in table.values()) == getattr(counts, key)
    assert set(counts.by_role) == {"coder"}
    assert set(counts.by_source) == {"workspace"}
    assert counts.drafted_at.total() == drafted
    assert counts.accepted_at.total() == accepted
    assert 0 < counts.num_hits["workspace"] <= counts.num_lookups["workspace"]


def test_drafter_stops_and_probes_again() -> None:
    drafter = make(CapTable(Limits(floor=1e-12)))
    drafter.start("a", np.tile(text(100, 60), 4), session="s")
    drafted = [bool(step(drafter, "a", text(100 + i % 50, 9))) for i in range(80)]
    assert all(drafted[:WINDOW])
    assert drafted[WINDOW:].count(True) < 12
    assert any(drafted[40:]), "it probes"
    assert drafter.counts.num_accepted_tokens == 0


# --- ten thousand random calls -----------------------------------------------------------------------------------


def test_random_calls_give_legal_drafts() -> None:
    """Stores, lengths, tokens, batch sizes, requests that start and end at random: 10,000 rows."""
    rng = np.random.default_rng(2)
    barred = [7, 300, 301]
    caps = CapTable(Limits(floor=0.02), {"coder": Limits(cap=128, factor=9, floor=0.001), "chat": Limits(cap=3)})
    budgets = Budgets(session=3 << 20, workspace=3 << 20, shared=3 << 20, tokens_per_step=300, sessions=6, tenants=3)
    drafter = make(caps, barred=barred, budgets=budgets)
    sequences: dict[str, tuple[Tokens, str]] = {}
    pending: dict[str, Draft | None] = {}
    rows_made = drafts_made = accepted = 0
    source = rng.integers(0, 1100, 4000).astype(np.int32)
    while rows_made < 10_000:
        if len(sequences) < 12 and rng.random() < 0.3:
            name = f"r{rows_made}"
            at, size = int(rng.integers(3000)), int(rng.integers(1, 400))
            prompt = source[at : at + size].copy() if rng.random() < 0.8 else rng.integers(0, 40, size).astype(np.int32)
            role = str(rng.choice(["coder", "chat", "other", "no such role"]))
            session, tenant = rng.choice(["s", "t", "u"]), rng.choice(["", "x", "y", "z"])
            if rng.random() < 0.3:
                drafter.open_file(str(tenant), int(rng.integers(40)), [source[at : at + 200], EMPTY])
            drafter.start(name, prompt, session=str(session) if rng.random() < 0.8 else None, tenant=tenant, role=role)
            sequences[name] = prompt, role
        rows = []
        for name in rng.permutation(list(sequences))[: int(rng.integers(0, 9))].tolist():
            sequence, role = sequences[name]
            draft = pending.get(name)
            kept = 0 if draft is None else int(rng.integers(0, draft.tokens.size + 1))
            accepted += kept
            new = [] if draft is None else draft.tokens[:kept].tolist()
            at = int(rng.integers(4000))
            sequence = np.concatenate((sequence, new, source[at : at + 1])).astype(np.int32)
            sequences[name] = sequence, role
            num_new = len(new) + 1
            room = int(rng.choice([0, 1, 5, 48, 128]))
            rows.append(Row(name, sequence[-max(64, num_new) :], num_new, room))
        for row, draft in zip(rows, drafter.propose(rows), strict=True):
            pending[row.request] = draft
            if draft is not None:
                cap = caps.limits(sequences[row.request][1]).cap
                assert 1 <= draft.tokens.size <= min(row.room, cap)
                assert draft.tokens.dtype == np.int32
                assert ((draft.tokens >= 0) & (draft.tokens < VOCABULARY)).all()
                assert not np.isin(draft.tokens, barred).any()
                assert draft.chances.size == draft.tokens.size
                assert ((draft.chances > 0) & (draft.chances < 1)).all()
                drafts_made += 1
        rows_made += len(rows)
        if sequences and rng.random() < 0.2:
            name = str(rng.choice(list(sequences)))
            drafter.finish(name)
            del sequences[name]
            pending.pop(name, None)
        if rng.random() < 0.02:
            drafter.close_session(str(rng.choice(["s", "t"])), tenant=str(rng.choice(["", "x"])))
    assert drafts_made > 2000
    assert drafter.counts.num_accepted_tokens <= accepted
    assert drafter.counts.num_drafts > 1500
