"""CodeEvolve: a first population, then exploring or exploiting by a rate that reacts to progress.

Source: Assumpcao, Ferreira, Campos and Murai, "CodeEvolve: an open-source evolutionary framework
for algorithmic discovery and optimization", 2025 (arXiv 2510.14150), and its code (version 0.3).
Three rules, in which a choice's u is uniform on [0, 1):

- ``first``, as long as the island has fewer than ``population`` programs, those that failed and
  those that it began with among them: what it began with is changed.
- ``explore`` if u <= r: any program of the island with a score, elite or not, uniformly.
- ``exploit`` otherwise: the eligible one of rank i (1 for the best, equal ones share the mean of
  theirs) with probability proportional to 1 / i.                                             (1)

The rate r starts at ``rate``. Once the first population is there, it is computed anew before each
choice (`Schedule`): with a new best score r <- decrease r; after ``patience`` choices in a row
without one r <- increase r, and the count begins again; then it is kept inside [least, most].  (2)

Where this differs from its code: an iteration with K children is one step of (2), and equal scores
share a rank, where the code has the older program before the younger one.

Covers: the parent. What a prompt shows for each rule is the layout's: ``ancestors`` of
``prompts.layout``.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from engine.core import Candidate, Direction
from engine.search.parents import (
    EXPLORE,
    FIRST,
    PARENTS,
    Draw,
    ParentOutcome,
    ParentPolicy,
    ParentSettings,
)
from engine.search.race import winner
from engine.search.roster import hashes_of, ranks, scores_of
from engine.section import Count, Number, Share, Whole, require, section


@PARENTS.register("codeevolve")
@section
class CodeEvolveSettings(ParentSettings):
    """The size of the first population, and the schedule of the exploration rate.

    Attributes:
        population: programs of an island below which it changes what it began with.
        rate: of exploring, at first.
        least: below which the rate never falls; with ``most`` the same, it never changes.
        most: above which it never rises.
        patience: choices without a new best score after which the rate rises.
        increase: factor by which it rises.
        decrease: factor by which it falls with each new best score.
    """

    population: Whole = Field(default=10, ge=0)
    rate: Share = 0.2
    least: Share = 0.2
    most: Share = 0.5
    patience: Count = 5
    increase: Number = Field(default=1.05, ge=1, le=1000)
    decrease: Number = Field(default=0.95, gt=0, le=1)

    @model_validator(mode="after")
    def _rate_is_inside(self) -> Self:
        must_be = f"at least search.parent.least ({self.least})"
        require(self.least <= self.most, "most", self.most, must_be)
        must_be = f"from search.parent.least ({self.least}) to search.parent.most ({self.most})"
        require(self.least <= self.rate <= self.most, "rate", self.rate, must_be)
        return self

    def make(self, *, direction: Direction) -> "CodeEvolve":
        """Return the policy of an island without a program."""
        return CodeEvolve(self, direction=direction)


class CodeEvolve(ParentPolicy):
    """A first population, and then exploring or exploiting choices."""

    def __init__(self, settings: CodeEvolveSettings, *, direction: Direction) -> None:
        """``direction``: of the scores."""
        self._population = settings.population
        self._direction = direction
        self._begun: set[str] = set()  # what the island began with
        self._known = 0  # programs of the island, those that failed among them
        self._best: float | None = None
        self.schedule = Schedule(settings, direction=direction)

    def takes_any(self, *, u: float) -> bool:
        """Return whether a choice is not among the elites alone."""
        return self._rule(u) != "exploit"

    def choose(self, candidates: Sequence[Candidate], *, u: float, key: int) -> Draw:
        """Choose one of ``candidates``, at least one; ``u`` says by which rule."""
        rule = self._rule(u)
        if rule == FIRST:
            begun = [each for each in candidates if each.id in self._begun]
            candidates = begun or candidates
        log_weights = np.zeros(len(candidates))
        if rule == "exploit":
            log_weights -= np.log(ranks(scores_of(candidates), self._direction))  # (1)
        place = winner(hashes_of(candidates), log_weights, key=key)
        return Draw(candidate=candidates[place], rule=rule)

    def begin_with(self, candidate: Candidate) -> None:
        """Count a program that the island begins with, which the first population is made of."""
        self._begun.add(candidate.id)
        self._take_in(candidate.score)

    def receive(self, candidate: Candidate) -> None:
        """Count a program that the island was sent."""
        self._take_in(candidate.score)

    def tell(self, outcome: ParentOutcome) -> None:
        """Count the children, and have the rate react to them once the population is there."""
        for child in outcome.children:
            self._take_in(child.score)
        if self._known >= self._population:
            self.schedule.step(self._best)

    def _rule(self, u: float) -> str:
        if self._known < self._population:
            return FIRST
        return EXPLORE if u <= self.schedule.rate else "exploit"

    def _take_in(self, score: float | None) -> None:
        self._known += 1
        if score is not None and (self._best is None or self._direction.better(score, self._best)):
            self._best = score


class Schedule:
    """The exploration rate, which falls with progress and rises on a plateau; see (2)."""

    def __init__(self, settings: CodeEvolveSettings, *, direction: Direction) -> None:
        """Begin at the settings' rate; ``direction`` is that of the scores."""
        self._settings = settings
        self._direction = direction
        self._last: float | None = None  # the best score at the last step
        self._waited = 0
        self.rate = settings.rate

    def step(self, best: float | None) -> None:
        """Compute the rate anew; ``best`` is the island's best score, None if it has none."""
        own, rate = self._settings, self.rate
        if best is not None and (self._last is None or self._direction.better(best, self._last)):
            self._last, self._waited = best, 0
            rate *= own.decrease
        else:
            self._waited += 1
            if self._waited >= own.patience:
                self._waited = 0
                rate *= own.increase
        self.rate = min(max(rate, own.least), own.most)
