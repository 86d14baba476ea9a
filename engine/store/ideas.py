"""The idea repository: what the advisor thought of, which programs tested it, and what came of it.

It is a fold of the events `Idea`, `Advice`, `Child` and `Verdict`, so a run that goes on has the
repository that it had. A prompt that was composed when the log had n events is composed again from
what the first n events say (`IdeaRepository.as_of`).

Does not cover what of it is shown: ``engine.advisor.repository``.
"""

from dataclasses import dataclass, field

from engine.core import Advice, Child, Direction, Idea, Novelty, Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of an experiment.

    Attributes:
        score: of the program; None if it got none.
        gain: how much better than its parent's that is, in the problem's direction.
        reason: why there is no score, in a few words.
    """

    score: float | None = None
    gain: float | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """A child that tests an idea.

    Attributes:
        child: its id.
        description: what was to be tried.
        outcome: None as long as it is not judged.
    """

    child: str
    description: str
    outcome: Outcome | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TriedIdea:
    """An idea of the repository, and its experiments in the order in which they were recorded."""

    idea: Idea
    experiments: tuple[Experiment, ...]

    @property
    def gain(self) -> float | None:
        """The best one of its experiments; None where none has a score."""
        outcomes = [each.outcome for each in self.experiments if each.outcome is not None]
        return max((each.gain for each in outcomes if each.gain is not None), default=None)


@dataclass(kw_only=True, slots=True)
class _Test:
    """An experiment, with the events after which it and its outcome were known."""

    idea: str
    description: str
    at: int
    outcome: Outcome | None = None
    judged: int = 0


@dataclass(kw_only=True, slots=True)
class IdeaRepository:
    """The ideas of a run so far; `fold` every event that may concern it.

    Attributes:
        direction: of the problem's score.
    """

    direction: Direction
    _ideas: dict[str, tuple[int, Idea]] = field(default_factory=dict, init=False)
    _tests: dict[str, _Test] = field(default_factory=dict, init=False)  # by child
    _scores: dict[str, float] = field(default_factory=dict, init=False)  # by candidate
    _parents: dict[str, str] = field(default_factory=dict, init=False)  # by child that tests

    def __len__(self) -> int:
        """How many ideas were had, repeated ones included."""
        return len(self._ideas)

    def knows(self, idea: str | None) -> bool:
        """Whether an idea is recorded; None, for no idea, always is."""
        return idea is None or idea in self._ideas

    def count(self, novelty: Novelty) -> int:
        """Return how many ideas were found to be so."""
        return sum(idea.novelty is novelty for _, idea in self._ideas.values())

    def fold(self, event: Idea | Advice | Child | Verdict, *, at: int) -> None:
        """Take in an event, the ``at``-th of the log."""
        if isinstance(event, Idea):
            self._ideas[event.id] = at, event
        elif isinstance(event, Advice):
            if event.idea is not None and event.outage is None:  # else nobody tried it
                test = _Test(idea=event.idea, description=event.experiment, at=at)
                self._tests[event.child] = test
        elif isinstance(event, Child):
            if event.id in self._tests:
                self._parents[event.id] = event.parent
                if event.refusal is not None:
                    self._judge(event.id, Outcome(reason=f"not run: {event.refusal}"), at)
        else:
            self._fold_verdict(event, at)

    def as_of(self, events: int) -> tuple[TriedIdea, ...]:
        """Return the repository as the first ``events`` events have it, in the order of the log.

        Ideas that repeat others are not in it.
        """
        experiments: dict[str, list[Experiment]] = {}
        for child, test in self._tests.items():
            if test.at <= events:
                outcome = test.outcome if test.judged <= events else None
                made = Experiment(child=child, description=test.description, outcome=outcome)
                experiments.setdefault(test.idea, []).append(made)
        return tuple(
            TriedIdea(idea=idea, experiments=tuple(experiments.get(idea.id, ())))
            for at, idea in self._ideas.values()
            if at <= events and idea.novelty is not Novelty.REPEATS
        )

    def _fold_verdict(self, verdict: Verdict, at: int) -> None:
        if verdict.score is not None:
            self._scores[verdict.candidate] = verdict.score
        if verdict.candidate not in self._tests:
            return
        evaluation = verdict.evaluation
        if evaluation.score is None:
            outcome = Outcome(reason=f"{evaluation.failure}: {evaluation.message}")
        else:
            parent, key = self._scores[self._parents[verdict.candidate]], self.direction.key
            gain = key(parent) - key(evaluation.score)
            outcome = Outcome(score=evaluation.score, gain=gain)
        self._judge(verdict.candidate, outcome, at)

    def _judge(self, child: str, outcome: Outcome, at: int) -> None:
        self._tests[child].outcome, self._tests[child].judged = outcome, at
