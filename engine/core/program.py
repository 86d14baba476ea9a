"""A program, by what can be said of it without running it.

Does not cover reading one from its text: ``engine.syntax``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A program that is valid Python. `engine.syntax.read` makes one, once for each text.

    Attributes:
        text: its source.
        key: a digest, equal for programs that differ in layout, comments or docstrings alone.
        undefined: names that it would fail on because nothing defines them, in alphabetical order.
        nodes: of its syntax tree.
        depth: levels of the tree below its root.
        loops: statements and comprehensions that repeat.
        branches: conditions, cases and exception handlers.
        calls: of functions.
    """

    text: str
    key: str
    undefined: tuple[str, ...]
    nodes: int
    depth: int
    loops: int
    branches: int
    calls: int
