"""A cursor inside a word: the prompt ends before that word, and the model has to write its begin again.

Models see words whole; a prompt that ends in a part of one asks for tokens that seldom follow it. The user's text stays
as it is: what was left out is asked of the completion, and taken off it.
"""

from __future__ import annotations

LONGEST = 24
"""Characters of a word's begin that are left to the model."""


def heal(prefix: str, suffix: str) -> tuple[str, str]:
    """(the prefix without the begun word, that begin); "" where the cursor does not stand in or after one."""
    end = len(prefix)
    begin = end
    while begin > 0 and end - begin < LONGEST and (prefix[begin - 1].isalnum() or prefix[begin - 1] == "_"):
        begin -= 1
    inside = suffix[:1].isalnum() or suffix[:1] == "_"
    whole = begin > 0 and (prefix[begin - 1].isalnum() or prefix[begin - 1] == "_")
    if begin in (end, 0) or whole or not inside:
        return prefix, ""
    return prefix[:begin], prefix[begin:]
