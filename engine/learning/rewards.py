"""What the children of a call are worth to a learner: a number for each, from what became of it.

Two kinds. ``target`` is that of PACEvolve++ (section 3.3, Eq. 5): how much of the way from the
initial program's score to the problem's target a child has gone, whoever its parent was. ``rank``
is for models that seldom write a program at all: first whether a child is valid and new, then where
it stands among the siblings that beat their parent.

Does not cover what a reward does to the model: ``engine.learning.advantages``.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.core import Direction, Failure, Refusal, UserError

Kind = Literal["target", "rank"]
Reward = float | None
"""None for a child that nobody has judged; it is no member of its group."""

FULL = 5.0
"""`Rewards` of kind ``target``: at the target and beyond; c of Eq. 5."""
FAILED = -1.0
"""Of a child that got no score; Eq. 5."""
SCREENED = 0.0
"""Of one that a cheap stage found too bad to score in full: as one no better than the initial."""

NOTHING = 0.0
"""`Rewards` of kind ``rank``: of a child that is not valid, or not new."""
NEUTRAL = 0.05
"""Of one that scores exactly what its parent does, and of one that was screened."""
NEW = 0.4
"""Of the best one that is worse than its parent; the worst one has `NEUTRAL`."""
BETTER = 0.8
"""Of the worst one that is better than its parent; the best one has `BEST`."""
BEST = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of one child.

    Attributes:
        refusal: why it was not evaluated; None if it was to be.
        failure: why its evaluation gave no score.
        score: that it got. None, with no refusal and no failure, for a child without a verdict.
        key: of its program, as `engine.core.Program` has it; None without a program.
    """

    refusal: Refusal | None = None
    failure: Failure | None = None
    score: float | None = None
    key: str | None = None

    @property
    def is_judged(self) -> bool:
        """Whether anybody has said anything of it: a budget's end, or a failure, says nothing."""
        if self.refusal in (Refusal.BUDGET, Refusal.FAILED):
            return False
        return (self.refusal, self.failure, self.score) != (None, None, None)

    @property
    def finite_score(self) -> float | None:
        """The score; None if there is none, or one that is not finite."""
        return self.score if self.score is not None and math.isfinite(self.score) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewards:
    """The rule by which the children of one run are rewarded.

    Attributes:
        kind: ``target`` or ``rank``.
        direction: of the problem.
        initial: score of its initial program.
        target: of the problem; unused by ``rank``.

    Raises:
        UserError: the kind is ``target``, and the target is missing or no better than the initial
            program's score.
    """

    kind: Kind
    direction: Direction
    initial: float
    target: float | None

    def __post_init__(self) -> None:
        if self.kind == "rank":
            return
        if self.target is None:
            raise UserError(
                "the problem declares no target, which learning.reward=target needs; add a line "
                "'target: SCORE' to its problem.yaml, or give learning.reward=rank"
            )
        if not self.direction.better(self.target, self.initial):
            raise UserError(
                f"the problem's target is {self.target}, no better than its initial program's "
                f"score, {self.initial}; mend 'target' in problem.yaml, or give "
                "learning.reward=rank"
            )

    def of(self, outcomes: Sequence[Outcome], *, parent_score: float) -> tuple[Reward, ...]:
        """Return the reward of each child of a call, in their order.

        Args:
            outcomes: of all children of the call, in the order of their indices.
            parent_score: of the program that they change; only ``rank`` looks at it.

        Both kinds leave out (None) a child that was refused because the budget was spent, and one
        without a verdict: nobody judged them, and calling them failures would teach the model that
        late children are bad.

        ``target`` is Eq. 5 to the letter: `FULL` u with u from 0 to 1, linear between the initial
        program's score and the target and clamped outside, in either direction. All else earns
        `FAILED`: a child without a program (unparsed, absent), with one that can't run or be used
        (undefined names, too long, any failure, a score that is not finite), and with one that
        is known (unchanged, duplicate, similar). The source says this of failures; a known program
        was no step of the search either, and would otherwise earn again what it earned first, so
        that copying the parent were the safest way to a high reward. The first of equal siblings
        keeps its reward whole, since the best of k children is to count. The exception is a
        screened program: it ran and was found bad, so it earns `SCREENED`.

        ``rank`` gives `NOTHING` to all that earns `FAILED` above. Valid new programs that are worse
        than their parent earn `NEUTRAL` to `NEW`, those that are better `BETTER` to `BEST`, either
        way spread evenly by their order; equal scores share the mean of their places. A single one
        that is worse earns the middle, a single one that is better `BEST`. Any reward above `NEW`
        is thus for progress, whatever the scale of the scores. Without the order among the worse
        ones a model learns changes that are valid and do harm (``docs/log.md``). A score equal to
        the parent's earns but `NEUTRAL`: most such changes are of code that decides nothing, the
        easiest edit to learn. So does a screened program, of which nobody knows that it is valid in
        full. Equal siblings
        (one is new, the others are duplicates of its key) share that one's reward in equal parts:
        N copies of an edit earn what it earns once, whichever came first. That keeps copies in the
        group, without which its mean would be biased, and makes them not pay.
        """
        if self.kind == "target":
            return tuple(self._of_progress(each) for each in outcomes)
        return _shared(outcomes, self._of_ranks(outcomes, parent_score))

    def _of_progress(self, outcome: Outcome) -> Reward:
        if not outcome.is_judged:
            return None
        if outcome.refusal is None and outcome.failure is Failure.SCREENED:
            return SCREENED
        score = outcome.finite_score
        if outcome.refusal is not None or score is None:
            return FAILED
        return FULL * self._progress(score)

    def _progress(self, score: float) -> float:
        """Return u of PACEvolve++, section 3.3, "Progress-normalized reward shaping"."""
        assert self.target is not None
        low, high = sorted((self.initial, self.target))  # y_min and y_max
        within = min(max(score, low), high)
        gone = within - low if self.direction is Direction.MAXIMISE else high - within
        return gone / (high - low)

    def _of_ranks(self, outcomes: Sequence[Outcome], parent_score: float) -> list[Reward]:
        scores = [
            score
            for outcome in outcomes
            if outcome.refusal is None and (score := outcome.finite_score) is not None
        ]
        beats, key = self.direction.better, self.direction.key
        better = sorted((each for each in scores if beats(each, than=parent_score)), key=key)
        worse = sorted((each for each in scores if beats(parent_score, than=each)), key=key)
        return [self._of_rank(outcome, better, worse) for outcome in outcomes]

    def _of_rank(self, outcome: Outcome, better: Sequence[float], worse: Sequence[float]) -> Reward:
        """Return what one child earns.

        Args:
            outcome: what became of it.
            better: the scores of the valid new siblings that beat the parent, best first.
            worse: of those that the parent beats, best first.
        """
        if not outcome.is_judged:
            return None
        if outcome.refusal is not None:
            return NOTHING
        if outcome.failure is Failure.SCREENED:
            return NEUTRAL
        score = outcome.finite_score
        if score is None:
            return NOTHING
        if score in better:
            return _placed(score, better, low=BETTER, high=BEST, alone=BEST)
        if score in worse:
            return _placed(score, worse, low=NEUTRAL, high=NEW, alone=(NEUTRAL + NEW) / 2)
        return NEUTRAL


def _placed(
    score: float, scores: Sequence[float], *, low: float, high: float, alone: float
) -> float:
    """Return the reward of a place among scores, best first; equal ones share their places' mean.

    Args:
        score: one of ``scores``.
        scores: at least one.
        low: of the last place.
        high: of the first place.
        alone: of the only place.
    """
    if len(scores) == 1:
        return alone
    place = scores.index(score) + (scores.count(score) - 1) / 2
    return high - (high - low) * place / (len(scores) - 1)


def _shared(outcomes: Sequence[Outcome], rewards: Sequence[Reward]) -> tuple[Reward, ...]:
    """Return the rewards, with that of a sibling which has copies divided among all of them.

    A copy of a sibling that nobody has judged is left out with it.
    """
    earned = {
        outcome.key: reward
        for outcome, reward in zip(outcomes, rewards, strict=True)
        if outcome.refusal is None and outcome.key is not None
    }
    sharing = [
        outcome.key in earned and outcome.refusal in (None, Refusal.DUPLICATE)
        for outcome in outcomes
    ]
    copies = Counter(each.key for each, shares in zip(outcomes, sharing, strict=True) if shares)
    return tuple(
        _part(earned[outcome.key], copies[outcome.key])
        if shares and outcome.key is not None
        else reward
        for outcome, reward, shares in zip(outcomes, rewards, sharing, strict=True)
    )


def _part(reward: Reward, count: int) -> Reward:
    return None if reward is None else reward / count
