"""What the fills of one maker came to: counted apart from the model's children."""

from dataclasses import dataclass

from engine.core import Direction, Verdict


@dataclass(kw_only=True, slots=True)
class FillTally:
    """A fold of verdicts on the fills of one maker.

    Attributes:
        judged: fills with a verdict.
        valid: those with a score.
        better: those with a better score than their parent.
        seconds: of their runs, over all evaluators.
        best_score: of them; None if none has one.
    """

    judged: int = 0
    valid: int = 0
    better: int = 0
    seconds: float = 0.0
    best_score: float | None = None

    def fold(self, verdict: Verdict, *, parent: float | None, direction: Direction) -> None:
        """Take in a verdict.

        Args:
            verdict: on a fill.
            parent: the score of the program that it is a variant of.
            direction: of the problem's score.
        """
        self.judged += 1
        self.seconds += verdict.evaluation.seconds
        score, best = verdict.score, self.best_score
        if score is None:
            return
        self.valid += 1
        self.better += parent is not None and direction.better(score, than=parent)
        if best is None or direction.better(score, than=best):
            self.best_score = score

    def add(self, other: "FillTally", *, direction: Direction) -> None:
        """Take in what another one was folded from."""
        self.judged += other.judged
        self.valid += other.valid
        self.better += other.better
        self.seconds += other.seconds
        score, best = other.best_score, self.best_score
        if score is not None and (best is None or direction.better(score, than=best)):
            self.best_score = score
