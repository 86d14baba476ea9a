"""Programs that no call made, and what became of any program."""

from dataclasses import dataclass

from engine.core.events.event import RecordedEvent
from engine.core.program import Evaluation, Program


@dataclass(frozen=True, kw_only=True, slots=True)
class Seed(RecordedEvent):
    """The run begins with this program of a pool too; its verdict follows. Subject: its id.

    Attributes:
        number: its place in the pool, from 0.
        source: where it was read: ``FOLDER/FILE`` or ``RUN/CANDIDATE``.
        islands: numbers of the islands that begin with it, if it has a score.
    """

    KIND = "seed"
    NAMED_BY = ("candidate",)
    number: int
    source: str
    program: str
    islands: tuple[int, ...]

    @property
    def candidate(self) -> str:
        """Its id as a candidate."""
        return f"pool.{self.number}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fill(RecordedEvent):
    """A program was made without the model, for an evaluator that had nothing to do; its verdict
    follows. Subject: its number.

    Attributes:
        number: fills before this one.
        maker: what made it: see ``engine.fill``.
        parent: id of the program that it is a variant of.
        island: that it joins if it is better than its parent.
        sample: which of the maker's questions about the parent it is, from 0.
        program: the program.
        joins: whether it may be a parent where it is better than its own.
    """

    KIND = "fill"
    NAMED_BY = ("number",)
    number: int
    maker: str
    parent: str
    island: int
    sample: int
    program: Program
    joins: bool

    @property
    def id(self) -> str:
        """Under which its verdict stands, and under which it is a candidate."""
        return f"f{self.number}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict(RecordedEvent):
    """A candidate was evaluated. Subject: its id.

    Attributes:
        evaluation: what the evaluation found.
        program: source text, for the initial program, which no child event holds; else None.
        cell: the program's cell in the islands' archives: a bin for each feature. None for a
            program without a cell, and in a run without archives.
    """

    KIND = "verdict"
    NAMED_BY = ("candidate",)
    candidate: str
    evaluation: Evaluation
    program: str | None = None
    cell: tuple[int, ...] | None = None

    @property
    def score(self) -> float | None:
        """The evaluation's score; None if it gave none."""
        return self.evaluation.score


@dataclass(frozen=True, kw_only=True, slots=True)
class SwitchedOff(RecordedEvent):
    """A cheap stage ranks too badly to go on screening. As an event, its subject is its name.

    Attributes:
        stage: its name.
        iteration: the first one whose candidates skip it.
        correlation: its rank correlation with the full score, as estimated.
        error: two standard errors of the estimate, upwards.
        pairs: fully evaluated candidates that the estimate rests on.
    """

    KIND = "switched_off"
    NAMED_BY = ("stage",)
    stage: str
    iteration: int
    correlation: float
    error: float
    pairs: int
