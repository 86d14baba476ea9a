"""A mutated program: some mutations, one after the other, each of which leaves a program.

Covers: which mutation is tried, how many there are, and what has to hold of the result: it parses,
it is another program (`engine.core.Program.key`), and it reads no name that nothing defines and
that the program before it did not read already. Comments and layout are lost.

Does not cover the mutations themselves: ``mutations.py``.
"""

import ast
import time
from collections.abc import Callable, Mapping

import numpy as np

from engine.mutation import mutations
from engine.mutation.mutations import Change, one_of
from engine.syntax import read
from engine.syntax.tree import copy_of

Mutation = Callable[[ast.Module], list[Change]]
"""Returns the changes that it may make of a tree; none if the tree has no place for it."""

MUTATIONS: Mapping[Mutation, float] = {
    mutations.constant: 4.0,
    mutations.operator: 1.0,
    mutations.comparison: 0.5,
    mutations.name: 1.0,
    mutations.call: 1.0,
    mutations.expression: 1.5,
    mutations.removal: 0.5,
    mutations.repetition: 0.5,
    mutations.exchange: 0.5,
}
"""The mutations and their weights. Plain guesses: a null hypothesis that was tuned on the problems
that it is measured on would be none."""

_KINDS = tuple(MUTATIONS)
_SHARES = np.array(tuple(MUTATIONS.values())) / sum(MUTATIONS.values())
_ATTEMPTS = 32


def mutated(program: str, *, seed: int, temperature: float) -> str:
    """Return ``program`` with 1 + Poisson(``temperature``) mutations.

    The same arguments give the same program. A program that has no valid mutation, such as an empty
    one, is returned as it is.
    """
    rng = np.random.default_rng(seed)
    for _ in range(1 + int(rng.poisson(temperature))):
        program = _once(program, rng)
    return program


def timed(program: str, *, seed: int, temperature: float) -> tuple[str, float]:
    """Return `mutated`, and the seconds that it took."""
    began = time.perf_counter()
    child = mutated(program, seed=seed, temperature=temperature)
    return child, time.perf_counter() - began


def _once(program: str, rng: np.random.Generator) -> str:
    before = read(program)
    if before is None:
        return program
    for _ in range(_ATTEMPTS):
        mutation = _KINDS[int(rng.choice(len(_KINDS), p=_SHARES))]
        tree = copy_of(program)
        changes = mutation(tree)
        if not changes:
            continue
        one_of(changes, rng)(rng)
        child = _text(tree)
        after = None if child is None else read(child)
        if (
            after is not None
            and after.key != before.key
            and set(before.undefined).issuperset(after.undefined)
        ):
            return after.text
    return program


def _text(tree: ast.Module) -> str | None:
    try:
        return ast.unparse(tree) + "\n"
    except (ValueError, RecursionError):  # an integer of thousands of digits; a tree too deep
        return None
