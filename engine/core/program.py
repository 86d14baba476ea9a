"""A program: what can be said of it without running it, the verdict on it, its place in a search.

Does not cover reading one from its text (``engine.syntax``), or how a verdict comes about
(``engine.evaluation``).
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

Cell = tuple[int, ...]
"""Where a program stands in an archive: the number of a bin for each feature."""

Place = tuple[int, int, str]
"""Iteration, number among its children, and id: the order of programs, whenever they finished."""

FIRST_ITERATION = -1
"""Number under which the programs stand that a run begins with."""

INITIAL = "initial"
"""Id of the candidate that every run starts from: the problem's initial program."""


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


class Failure(enum.StrEnum):
    """Why an evaluation gave no score."""

    ERROR = "error"  # the program raised, or has no entry point
    TIMEOUT = "timeout"  # it ran longer than its limit
    MEMORY = "memory"  # it asked for more memory than its limit
    CRASH = "crash"  # its process died
    OUTPUT = "output"  # it returned something else than its contract says
    REJECTED = "rejected"  # the outputs are well formed but not allowed
    SCREENED = "screened"  # a cheap stage found it too bad to be worth the next one
    STARVED = "starved"  # it ran where others left a core idle, which was too seldom to tell


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """The verdict on one program. Either ``score`` or ``failure`` is None, never both.

    Attributes:
        score: the problem's score, unrounded.
        failure: why there is no score.
        message: one line that says what went wrong; empty for a valid program.
        metrics: all metrics of the problem, ``score`` among them.
        artifacts: text that may help the next attempt: ``traceback``, ``stdout``.
        seconds: wall seconds of the program's own run.
        peak_bytes: largest resident size of the program's process.
    """

    score: float | None
    failure: Failure | None
    message: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    peak_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A program with a valid score: what the search may choose as a parent.

    Attributes:
        iteration: that generated it; `FIRST_ITERATION` for one that the run began with.
        index: which of the iteration's children it is.
        cell: its own in the islands' archives; None if it has none, and without archives.
    """

    id: str
    program: str
    score: float
    iteration: int = FIRST_ITERATION
    index: int = 0
    cell: Cell | None = None

    @property
    def place(self) -> Place:
        """Where it stands among the others."""
        return self.iteration, self.index, self.id


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """A program whose verdict is not in: it may be shown, without a score, but not be a parent."""

    id: str
    program: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """A child that got no score, and the verdict that says why."""

    id: str
    program: str
    evaluation: Evaluation
