"""What a maker of fills is, and the ideas that it has.

A maker proposes a variant of a program, is told its score, and can be made again from the recorded
fills and verdicts alone.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.core import Fill, Program, Verdict
from engine.search.search import Search
from engine.store import RunHistory

_FILLS = 5  # fourth word of what derives from the run's seed: see `engine.search.choice.chance_of`


@dataclass(frozen=True, kw_only=True, slots=True)
class Idea:
    """A variant that is to be made.

    Attributes:
        maker: whose idea it is.
        parent: id of the program to vary.
        island: on which it was found.
        sample: which of the maker's questions about the parent it is.
        make: makes it, in another process; None where chance finds none.
        joins: whether it may be a parent itself.
        is_known: whether its score is known and only its solution is wanted; it is not recorded.
    """

    maker: str
    parent: str
    island: int
    sample: int
    make: Callable[[], Program | None]
    joins: bool = True
    is_known: bool = False


class Maker(Protocol):
    """See the module."""

    def propose(self) -> Idea | None:
        """Return the next idea; None while there is none."""

    def tell(self, parent: str, sample: int, score: float | None) -> None:
        """Take in what became of an idea: its score, or none."""


def verdict_of(fill: Fill, *, search: Search, history: RunHistory) -> Verdict | None:
    """Return the verdict on a fill, or on the child that took its place; None while it is out."""
    first = search.known_as(fill.program) or fill.id
    return history.verdicts.get(fill.id) or history.verdicts.get(first)


def spent(maker: str, history: RunHistory) -> float:
    """Return the evaluators' seconds on the fills of a maker that are recorded."""
    filled = history.filled.get(maker)
    return 0.0 if filled is None else filled.seconds


def chance(seed: int, *words: int) -> np.random.Generator:
    """Return the chance of one idea, from the run's seed and two numbers that name the idea."""
    return np.random.default_rng([seed, *words, _FILLS])


def number_of(parent: str) -> int:
    """Return a number that names a program, for the chance of what varies it."""
    return zlib.crc32(parent.encode())
