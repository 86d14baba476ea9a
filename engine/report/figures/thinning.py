"""What is drawn of many rows, and where a score stands on an axis that outliers do not stretch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from engine.core import Direction
from engine.report.figures.figure import Row

R = TypeVar("R")

_LARGEST = 1e150
"""No axis goes further: a browser's numbers must not overflow between two ticks."""
_TAIL = 0.1  # share of the scores at the worse end that may lie off the axis
_ROOM = 0.5  # of the span of the others that the axis has beyond them
_FAR = 20  # spans: an aim further away is not on the axis


def thinned(
    rows: Sequence[R], most: int, *, keep: Callable[[R], bool] = lambda row: False
) -> list[R]:
    """Return at most about ``most`` rows, in order: those to keep, and others evenly among them."""
    if len(rows) <= most:
        return list(rows)
    kept = [keep(row) for row in rows]
    others = [place for place, is_kept in enumerate(kept) if not is_kept]
    room = max(1, most - sum(kept))
    if len(others) > room:
        others = [others[len(others) * i // room] for i in range(room)]
    chosen = {*others, *(place for place, is_kept in enumerate(kept) if is_kept)}
    return [rows[place] for place in sorted(chosen)]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreAxis:
    """The part of the scores that an axis shows.

    Attributes:
        low: where it begins.
        high: where it ends.
    """

    low: float
    high: float

    def place(self, score: float) -> dict[str, Any]:
        """Return where a score is drawn, and how: one that lies off the axis at its edge."""
        inside = min(self.high, max(self.low, score))
        return {"y": inside, "place": "on the axis" if inside == score else "off the axis"}

    def has(self, score: float) -> bool:
        """Whether a score lies on it."""
        return self.low <= score <= self.high


def score_axis(
    scores: Sequence[float], direction: Direction, *, aims: Sequence[float] = ()
) -> ScoreAxis:
    """Return an axis for scores: all of the better ones, and the worse ones if they are not far.

    Args:
        scores: that are drawn; none may be infinite.
        direction: which end is the better one.
        aims: scores worth reaching, on the axis too unless they are very far.
    """
    values = np.clip(np.array(scores or [0.0], dtype=np.float64), -_LARGEST, _LARGEST)
    sign = 1.0 if direction is Direction.MAXIMISE else -1.0
    ordered = np.sort(values * sign)
    best, worst = float(ordered[-1]), float(ordered[0])
    usual = float(ordered[int(_TAIL * (len(ordered) - 1))])
    span = (best - usual) or (best - worst) or abs(best) * 0.05 or 1.0
    worst = max(worst, usual - _ROOM * span)
    near = [aim * sign for aim in aims if abs(aim * sign - best) <= _FAR * span]
    best, worst = max([best, *near]), min([worst, *near])
    margin = 0.04 * ((best - worst) or span)
    low, high = sorted((sign * (worst - margin), sign * (best + margin)))
    return ScoreAxis(low=low, high=high)


def scores_of(rows: Sequence[Row], field: str = "score") -> list[float]:
    """Return the scores of the rows that have one."""
    return [row[field] for row in rows if row[field] is not None]
