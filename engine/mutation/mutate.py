"""A mutated program: some mutations, one after the other, each of which leaves a program.

Covers: which mutation is tried, how many there are, and what has to hold of the result: it parses,
it is another program (`engine.program.program_key`), and it reads no name that nothing defines and
that the program before it did not read already. Comments and layout are lost.

Does not cover the mutations themselves: ``expressions.py``, ``statements.py``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

import numpy as np

from engine import program as programs
from engine.mutation import expressions, statements

Mutation = Callable[[ast.Module, np.random.Generator], bool]
"""Changes one place of a tree; returns False, the tree unchanged, if it has no place for it."""

MUTATIONS: Mapping[Mutation, float] = {
    expressions.constant: 4.0,
    expressions.operator: 1.0,
    expressions.comparison: 0.5,
    expressions.name: 1.0,
    expressions.call: 1.0,
    expressions.expression: 1.5,
    statements.removal: 0.5,
    statements.repetition: 0.5,
    statements.exchange: 0.5,
}
"""The mutations and their weights. Plain guesses: a null hypothesis that was tuned on the problems
that it is measured on would be none."""

_ATTEMPTS = 32


def mutated(program: str, *, seed: int, temperature: float) -> str:
    """Return ``program`` with 1 + Poisson(``temperature``) mutations.

    The same arguments give the same program. One in which no mutation can be found that leaves a
    program, such as an empty one, is returned as it is.
    """
    rng = np.random.default_rng(seed)
    for _ in range(1 + int(rng.poisson(temperature))):
        program = _once(program, rng)
    return program


def _once(program: str, rng: np.random.Generator) -> str:
    before = programs.parse(program)
    if before is None:
        return program
    key, undefined = programs.program_key(before), set(programs.undefined_names(program, before))
    weights = np.array(list(MUTATIONS.values()))
    for _ in range(_ATTEMPTS):
        mutation = list(MUTATIONS)[int(rng.choice(len(weights), p=weights / weights.sum()))]
        tree = programs.parse(program)  # a fresh one: mutations change it in place
        assert tree is not None
        child = _text(tree) if mutation(tree, rng) else None
        after = None if child is None else programs.parse(child)
        if (
            child is not None
            and after is not None
            and programs.program_key(after) != key
            and undefined.issuperset(programs.undefined_names(child, after))
        ):
            return child
    return program


def _text(tree: ast.Module) -> str | None:
    try:
        return ast.unparse(tree) + "\n"
    except (ValueError, RecursionError):  # an integer of thousands of digits; a tree too deep
        return None
