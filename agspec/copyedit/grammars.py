"""The grammar as text for vLLM's own backends: EBNF (xgrammar) and Lark (guidance).

Lines and files are bounded by their numbers; ``i <= j``, and which file has how many lines where there are several, is
left to the resolver. Text ends at the first ``</gen>``, as in the byte machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from agspec.copyedit.program import CLOSE
from agspec.copyedit.source import Source


def ebnf(sources: Sequence[Source]) -> str:
    """For xgrammar (its EBNF, root rule ``root``)."""
    lines, files = _bounds(sources)
    rules = ["root ::= operation*", f"operation ::= {'copy | gen' if lines else 'gen'}", 'gen ::= "<gen>" text0']
    if lines:
        file = "file?" if files > 1 else ""
        rules += [f'copy ::= "<copy" {file} " lines=\\"" line "-" line "\\"/>"', f"line ::= {_numbers(lines)}"]
        if files > 1:
            rules += ['file ::= " file=\\"" number "\\""', f"number ::= {_numbers(files)}"]
    for at in range(len(CLOSE)):
        rules.append(f"text{at} ::= " + " | ".join(_choices(at)))
    return "\n".join(rules) + "\n"


def lark(sources: Sequence[Source]) -> str:
    """For guidance (llguidance's Lark, start rule ``start``)."""
    lines, files = _bounds(sources)
    rules = ["start: operation*", f"operation: {'copy | gen' if lines else 'gen'}", r"gen[lazy]: /<gen>(.|\n)*<\/gen>/"]
    if lines:
        file = "file? " if files > 1 else ""
        rules += [f'copy: "<copy" {file}" lines=\\"" LINE "-" LINE "\\"/>"', f"LINE: /{_pattern(lines)}/"]
        if files > 1:
            rules += ['file: " file=\\"" NUMBER "\\""', f"NUMBER: /{_pattern(files)}/"]
    return "\n".join(rules) + "\n"


def digits(most: int) -> list[list[str]]:
    """Numbers from 1 to ``most`` by their digits: each alternative a list of classes.

    >>> digits(25)
    [['[1-9]'], ['[1-1]', '[0-9]'], ['[2-2]', '[0-5]']]
    """
    text = str(most)
    found = [["[1-9]", *["[0-9]"] * (n - 1)] for n in range(1, len(text))]
    for at, char in enumerate(text):
        low, high = 0 if at else 1, int(char) - (at + 1 < len(text))
        if low <= high:
            fixed = [f"[{digit}-{digit}]" for digit in text[:at]]
            found.append([*fixed, f"[{low}-{high}]", *["[0-9]"] * (len(text) - at - 1)])
    return found


def _bounds(sources: Sequence[Source]) -> tuple[int, int]:
    return max((source.num_lines for source in sources), default=0), len(sources)


def _numbers(most: int) -> str:
    return " | ".join(" ".join(classes) for classes in digits(most))


def _pattern(most: int) -> str:
    return "|".join("".join(classes) for classes in digits(most))


def _choices(at: int) -> list[str]:
    """After ``at`` bytes of ``</gen>``: one more, a new beginning, or back to text."""
    char = CLOSE[at : at + 1].decode()
    on = f'"{char}"' if at + 1 == len(CLOSE) else f'"{char}" text{at + 1}'
    if at == 0:
        return [on, "[^<] text0"]
    return [on, '"<" text1', f"[^<{char}] text0"]
