"""Following a copy through edits, and telling what is being written."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agspec.draft.align import GRAM, LOST, Aligner, fill
from agspec.draft.lookup import Slot
from agspec.draft.names import REGION_NAMES
from agspec.draft.panel import Panel
from agspec.draft.regions import Regions, walk_all, walk_on
from agspec.scaffold import load_profiles
from agspec.tokens import as_tokens

FILE = list(range(100, 200))


def after(output: list[int], *, prompt: list[int] = FILE) -> list[int]:
    """What the aligner says comes next, token by token as the engine would tell it."""
    aligner = Aligner(as_tokens(prompt))
    for token in output:
        aligner.extend(as_tokens([token]))
    return follows(aligner)


def follows(aligner: Aligner) -> list[int]:
    slot = Slot.of(5)
    n, _ = fill(aligner.text, 5, *slot)
    return slot.tokens[:n].tolist()


def test_a_copy_is_taken_up_after_a_few_tokens() -> None:
    assert after(FILE[10 : 10 + GRAM - 1]) == []
    assert after(FILE[10 : 10 + GRAM]) == FILE[10 + GRAM :][:5]


def test_an_edited_token_does_not_end_it() -> None:
    copied = FILE[10:20]
    assert after([*copied, 900]) == FILE[20:25], "as if inserted"
    assert after([*copied, 900, 121]) == FILE[22:27], "replaced: found again one token on"
    assert after([*copied, 900, 901, 902, 123, 124]) == FILE[25:30]
    assert after([*copied, 140]) == FILE[41:46], "lines left out"


def test_a_lost_copy_is_given_up() -> None:
    assert after([*FILE[10:20], *range(900, 901 + LOST)]) == []


def test_the_latest_place_counts() -> None:
    prompt = [*FILE[:20], 1, *FILE[:10], *range(2, 4 + LOST)]
    assert after(FILE[:10], prompt=prompt) == [2, 3, 4, 5, 6]


@given(st.lists(st.integers(0, 3), max_size=60), st.lists(st.integers(0, 3), max_size=60))
def test_drafts_are_pieces_of_the_text(prompt: list[int], output: list[int]) -> None:
    found = after(output, prompt=prompt)
    whole = [*prompt, *output]
    assert not found or any(whole[i : i + len(found)] == found for i in range(len(whole)))


# --- regions -----------------------------------------------------------------------------------------------------


def regions_of(text: str) -> list[str]:
    """The region after each character of ``text``, one token a character."""
    regions = Regions(load_profiles().region_markers, [bytes([i]) for i in range(128)])
    state = np.zeros(2, np.int64)
    found = []
    for byte in text.encode():
        walk_on(as_tokens([byte]), regions.tables, state)
        found.append(REGION_NAMES[state[1]])
    return found


def test_regions_of_an_aider_reply() -> None:
    text = "Well:\n\na.py\n```python\n<<<<<<< SEARCH\nold\n=======\nnow\n>>>>>>> REPLACE\n```\nDone."
    found = regions_of(text)
    for part, want in (("Well", "prose"), ("old", "edit"), ("now", "edit"), ("Done", "prose")):
        assert found[text.index(part)] == want


def test_regions_of_tool_calls() -> None:
    text = '<think>hm</think>So <tool_call>{"path": 1, "old_str": "abc", "x": 2}</tool_call> end'
    found = regions_of(text)
    for part, want in (("hm", "thinking"), ("So", "prose"), ("path", "call"), ("abc", "edit"), ('x"', "call")):
        assert found[text.index(part)] == want, part
    assert found[-1] == "prose"


def test_a_draft_is_walked_without_moving_on() -> None:
    regions = Regions([(b"ab", [1, 1, 1, 1, 1])], [b"a", b"b", b"c"])
    state, panel = np.zeros(2, np.int64), Panel()
    board = panel.board
    walk_on(as_tokens([0]), regions.tables, state)
    for source, tokens in ((1, [1, 2, 0, 1]), (3, [2, 1])):
        board.tokens[source, : len(tokens)] = tokens
        panel.put(source, len(tokens), 1)
    walk_all(board.tokens, board.sizes, regions.tables, state, board.regions)
    assert board.regions[1, :4].tolist() == [0, 1, 1, 1]
    assert board.regions[3, :2].tolist() == [0, 0]
    assert state[1] == 0


def test_an_expected_output_is_followed_from_its_first_token() -> None:
    aligner = Aligner.expecting(as_tokens(FILE))
    assert follows(aligner) == FILE[:5]
    aligner.extend(as_tokens(FILE[:2]))
    assert follows(aligner) == FILE[2:7]
    aligner.extend(as_tokens([900]))
    assert follows(aligner) == FILE[2:7], "as if inserted"
    aligner.extend(as_tokens(FILE[3:6]))
    assert follows(aligner) == FILE[6:11]
