"""A program in the search: with a score, without a verdict yet, or with a failure."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.evaluation import Evaluation

INITIAL = "initial"
"""Id of the candidate that every run starts from: the problem's initial program."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A program with a valid score: what the search may choose as a parent."""

    id: str
    program: str
    score: float


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
