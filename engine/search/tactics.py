"""Tactics: when the model is to be asked what to try, and which idea a call is shown.

Two rules. AdaEvolve's meta-guidance (Cemri et al., 2026, and its code): of the last ``window``
children judged, on all islands, fewer than the share ``below`` were the best so far, and no idea is
left. The ideas then take turns until each stood in ``uses`` calls, and these calls change the best
program of all islands, since the ideas were found for it. ShinkaEvolve's meta notes (Lange et al.,
2025): every ``window`` children, and the ideas take turns until the next ones come. In a mix of
operators only calls whose prompts show an idea take a turn.

It is a fold over verdicts, calls and answers in the order of the log. Does not cover the question
or the answer: ``engine.tactics``.
"""

from collections import deque
from collections.abc import Collection

from engine.core import Direction
from engine.settings.tactics import TacticsSettings

TRIED = 10
"""The last ideas, which the model is told not to repeat; ``paradigm_max_tried`` in the code."""


class Tactician:
    """The ideas of a run."""

    def __init__(
        self, settings: TacticsSettings, *, direction: Direction, shown_by: Collection[str]
    ) -> None:
        """Begin without an idea.

        Args:
            settings: when the model is asked, and how often an idea is shown.
            direction: of the scores.
            shown_by: names of the operators whose prompts show ideas.
        """
        self._settings = settings
        self._shown_by = shown_by
        self._is_of_stagnation = settings.when == "stagnation"
        self._direction = direction
        self._best: float | None = None
        self._improved: deque[bool] = deque(maxlen=settings.window)
        self._judged = 0  # since the last answer
        self._ideas: tuple[str, ...] = ()
        self._calls = 0  # since the last answer
        self.tried: deque[str] = deque(maxlen=TRIED)

    def idea_for(self, operator: str) -> str:
        """Return the idea that the next call shows if it is this operator's; empty for none."""
        return self._current if operator in self._shown_by else ""

    @property
    def _current(self) -> str:
        ideas = self._ideas
        is_over = self._is_of_stagnation and self._calls >= self._settings.uses * len(ideas)
        return "" if is_over or not ideas else ideas[self._calls % len(ideas)]

    def changes_the_best(self, operator: str) -> bool:
        """Whether the next call, this operator's, is to change the best program of all islands."""
        return self._is_of_stagnation and bool(self.idea_for(operator))

    @property
    def is_due(self) -> bool:
        """Whether the model is to be asked now."""
        window = self._settings.window
        if not self._is_of_stagnation:
            return self._judged >= window
        is_full = len(self._improved) == window
        return (
            is_full
            and not self._current
            and self._improved.count(True) < (self._settings.below * window)
        )

    def judge(self, score: float | None) -> None:
        """Take in a verdict on a child."""
        self._judged += 1
        self._improved.append(self.begin_with(score))

    def begin_with(self, score: float | None) -> bool:
        """Take in a score; return whether it is the best so far."""
        better = self._direction.better
        is_best = score is not None and (self._best is None or better(score, than=self._best))
        if is_best:
            self._best = score
        return is_best

    def begin(self, operator: str) -> None:
        """Take in that a call of an operator began."""
        self._calls += operator in self._shown_by

    def take(self, ideas: tuple[str, ...]) -> None:
        """Take in an answer; if it holds no idea, those that come every so many children stand."""
        if ideas or self._is_of_stagnation:
            self._ideas, self._calls = ideas, 0
        self._judged = 0
        self.tried.extend(ideas)
        if not ideas:
            self._improved.clear()  # or the model would be asked again at once
