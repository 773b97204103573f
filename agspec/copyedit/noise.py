"""What an error of one line costs: programs whose copies are moved, and how often the result is still exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from agspec.copyedit.ceiling import Case, ordered_program
from agspec.copyedit.program import Copy, Operation, Program
from agspec.copyedit.resolve import resolve
from agspec.copyedit.source import Source

SEEDS = 10
"""Draws of a random model, a case."""
Move = tuple[int, int]
"""By how many lines the first and the last line of a copy move."""
Model = Callable[[np.random.Generator, int], list[Move]]
"""(randomness, number of copies) -> a move for each."""


def _each(rng: np.random.Generator, number: int, choices: tuple[int, ...]) -> list[Move]:
    return [(int(step), int(step)) for step in rng.choice(choices, number)]


def _one(rng: np.random.Generator, number: int) -> list[Move]:
    moves = [(0, 0)] * number
    if number:
        step = int(rng.choice((-1, 1)))
        moves[int(rng.integers(number))] = (step, step)
    return moves


MODELS: dict[str, Model] = {
    "all +1": lambda rng, number: [(1, 1)] * number,
    "all -1": lambda rng, number: [(-1, -1)] * number,
    "each +-1": lambda rng, number: _each(rng, number, (-1, 1)),
    "each 0, +-1": lambda rng, number: _each(rng, number, (-1, 0, 1)),
    "each end 0, +-1": lambda rng, number: [(int(i), int(j)) for i, j in rng.choice((-1, 0, 1), (number, 2))],
    "one copy +-1": _one,
    "starts +-1": lambda rng, number: [(int(step), 0) for step in rng.choice((-1, 1), number)],
}


def moved(program: Program, moves: Iterable[Move], num_lines: int) -> Program:
    """The program with each copy moved, kept within the file and at least a line long."""
    found: list[Operation] = []
    waiting = iter(moves)
    for operation in program:
        if isinstance(operation, Copy):
            start, end = next(waiting)
            first = min(max(1, operation.first + start), num_lines)
            found.append(Copy(first, min(max(first, operation.last + end), num_lines)))
        else:
            found.append(operation)
    return tuple(found)


def exact_matches(cases: Iterable[Case]) -> dict[str, float]:
    """Share of (case, draw) whose moved program still writes the result, by model; the ordered programs."""
    exact = dict.fromkeys(MODELS, 0)
    number = 0
    for case in cases:
        before, after = Source(case.before.encode()), case.after.encode()
        program = ordered_program(before, Source(after))
        copies = sum(isinstance(operation, Copy) for operation in program)
        number += SEEDS
        for name, model in MODELS.items():
            for seed in range(SEEDS):
                moves = model(np.random.default_rng(seed), copies)
                exact[name] += resolve(moved(program, moves, before.num_lines), [before]) == after
    return {name: found / number if number else 0.0 for name, found in exact.items()}
