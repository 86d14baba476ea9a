"""A mutated program: some mutations, one after the other, each of which leaves a program.

Covers: which part of a program is mutated, how many mutations there are, and what has to hold of
the result: it is a program and another one (`engine.core.Program.key`), it differs only in what may
change (``engine.syntax.blocks``), and it reads no name that nothing defines and that the program
before it did not read already. Comments and layout of a Python file, or of an evolve block in one,
are lost.

Does not cover the mutations themselves: ``python.py``, ``lines.py``.
"""

import time

import numpy as np

from engine.mutation.lines import mutated_lines
from engine.mutation.python import mutated_python
from engine.syntax import read
from engine.syntax.blocks import PLAIN, File, Outline, keeps_fixed, outline

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
    whole = outline(program)
    for attempt in range(2 * _ATTEMPTS):
        child = _changed(whole, rng, grows=attempt >= _ATTEMPTS)
        after = None if child is None else read(child)
        if (
            after is not None
            and after.key != before.key
            and set(before.undefined).issuperset(after.undefined)
            and keeps_fixed(after.text, parent=program)
        ):
            return after.text
    return program


def _changed(whole: Outline, rng: np.random.Generator, *, grows: bool) -> str | None:
    """Return a program with one mutation, in a part of it that is chosen by length."""
    parts = [(file, span) for file in whole.open_files for span in file.spans]
    file, span = parts[0]
    if len(parts) > 1:
        lengths = np.array([1.0 + end - start for _, (start, end) in parts])
        file, span = parts[int(rng.choice(len(parts), p=lengths / lengths.sum()))]
    text = _mutated(file, span, rng, grows=grows)
    return None if text is None else whole.with_texts({file.name: text}).text


def _mutated(
    file: File, span: tuple[int, int], rng: np.random.Generator, *, grows: bool
) -> str | None:
    if file.name == PLAIN or file.name.endswith(".py"):
        return mutated_python(file.text, span if file.has_blocks else None, rng, grows=grows)
    return mutated_lines(file.name, file.text, span, rng)
