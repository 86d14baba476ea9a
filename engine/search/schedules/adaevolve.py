"""AdaEvolve's global adaptation: a bandit says whose turn it is, and stagnation opens islands.

Source: Cemri et al., "AdaEvolve: adaptive LLM driven zeroth-order optimization" (arXiv:2602.20133),
global adaptation, and its code. For each child of island i let delta be its improvement of the best
of its island, as a share of the best of all islands, at most 1, and 0 where there is none. Then

    r_i <- rho r_i + delta,   v_i <- rho v_i + 1,   n_i <- n_i + 1,          rho = 0.9,      (1)

and the next call is for the island with the largest

    r_i / v_i + c sqrt(ln(N + 1) / n_i),   N = sum of the n_i,               c = 1.41,       (2)

once each has had three children. The reward and v_i are forgotten, so that an old breakthrough is;
n_i is not. What an island is sent raises its best, and earns it nothing. As there, one call is
under way at a time: each choice knows all that came before.

Let b of n children so far have improved their island's best. Once at least 30 children were judged
since the last island was opened, one is opened if there are fewer than five and

    (1 + b) / (1 + n) < theta,                                           theta = 0.015.      (3)

The ones stand for the initial program, so none is opened before the 66th child.

Where this differs from the code: every child counts, also one that is not among the 20 best of its
island, which its archive refuses and which is no visit there, or an island of such would call for
ever; an iteration without a judged child counts as one that improved nothing, for the same reason;
among islands with fewer than three children the one with the fewest comes first, and not one by
chance; 30 counts children, and not iterations; and an island that is opened has the same archive as
the others.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from engine.core import Candidate, Direction
from engine.search.parents import ParentOutcome
from engine.search.schedules import SCHEDULES, Schedule, ScheduleSettings
from engine.section import Count, Number, Share, section

LEAST_VISITS = 3
"""Children that each island gets before they are compared."""
_EPSILON = 1e-8


@SCHEDULES.register("adaevolve")
@section
class AdaEvolveScheduleSettings(ScheduleSettings):
    """How islands are chosen and opened.

    Attributes:
        decay: rho, from 0 to below 1.
        exploration: c, 0 or more.
        most: islands, above which none is opened.
        below: theta.
        every: children between two islands that are opened.
    """

    decay: Number = Field(default=0.9, ge=0, lt=1)
    exploration: Number = Field(default=1.41, ge=0)
    most: Count = 5
    below: Share = 0.015
    every: Count = 30

    def make(self, *, direction: Direction) -> "AdaEvolveSchedule":
        """Return the schedule of a run that was told nothing."""
        return AdaEvolveSchedule(self, direction=direction)


@dataclass(kw_only=True, slots=True)
class _Arm:
    best: float | None = None
    reward: float = 0.0  # r
    recent: float = 0.0  # v
    visits: int = 0  # n


class AdaEvolveSchedule(Schedule):
    """The bandit, and the rule that opens islands."""

    def __init__(self, settings: AdaEvolveScheduleSettings, *, direction: Direction) -> None:
        """``direction``: of the scores."""
        self._settings = settings
        self._direction = direction
        self._arms: defaultdict[int, _Arm] = defaultdict(_Arm)
        self._best: float | None = None  # of all islands
        self._judged = 0  # n of (3)
        self._improved = 0  # b
        self._next_from = 0  # children judged from which on an island may be opened

    def allowed(self, free: Sequence[int], *, islands: int) -> Sequence[int]:
        """Return the island with the largest bound, if no call is under way."""
        if len(free) < islands:
            return ()
        visits = {island: self._arms[island].visits for island in free}
        least = min(free, key=lambda island: visits[island])
        if visits[least] < LEAST_VISITS:
            return (least,)
        return (max(free, key=self.bound),)

    def bound(self, island: int) -> float:
        """Return (2) of an island that had a child."""
        arm = self._arms[island]
        every = sum(each.visits for each in self._arms.values())
        bonus = math.sqrt(math.log(every + 1) / arm.visits)
        return arm.reward / arm.recent + self._settings.exploration * bonus

    @property
    def productivity(self) -> float:
        """The share of the children that improved their island, as in (3)."""
        return (1 + self._improved) / (1 + self._judged)

    def is_due(self, *, islands: int) -> bool:
        """Return whether to open an island now."""
        rule = self._settings
        is_early = islands >= rule.most or self._judged < self._next_from
        return not is_early and self.productivity < rule.below

    def opened(self) -> None:
        """Count from here until the next island may be opened."""
        self._next_from = self._judged + self._settings.every

    def receive(self, island: int, candidate: Candidate) -> None:
        """Take in what an island's children have to be better than."""
        self._improvement(self._arms[island], candidate.score)

    def tell(self, island: int, outcome: ParentOutcome) -> None:
        """Take in an iteration's children, in the order of their places."""
        arm, decay = self._arms[island], self._settings.decay
        for score in [child.score for child in outcome.children] or [None]:
            delta = self._improvement(arm, score)
            arm.reward = decay * arm.reward + delta
            arm.recent = decay * arm.recent + 1
            arm.visits += 1
            self._judged += 1
            self._improved += delta > 0

    def _improvement(self, arm: _Arm, score: float | None) -> float:
        """Return delta, and keep a score that is the island's or the run's best."""
        better = self._direction.better
        if score is None or not (arm.best is None or better(score, than=arm.best)):
            return 0.0
        delta = 1.0
        if arm.best is not None and self._best is not None:
            delta = min(1.0, abs(score - arm.best) / (abs(self._best) + _EPSILON))
        arm.best = score
        if self._best is None or better(score, than=self._best):
            self._best = score
        return delta
