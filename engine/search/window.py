"""The window: which programs a prompt shows, as a sequence that only grows at its end.

The prefix cache serves a prompt up to its first changed token. So a window that is sorted anew in
each iteration is computed anew in each iteration. This one keeps its order: the best new program of
an iteration joins at the end. Once the window has outgrown its size, it is compacted in one go to
the best and the most different programs. Only that iteration computes it again.

How far to let it grow. Let the window have c tokens after a compaction and grow by g tokens an
iteration, so that it is compacted every n iterations. A compaction costs c p seconds of prefill
(p seconds a token), and each token that is shown costs d seconds an iteration, because every step
of the decode attends to it. Per iteration that is

    c p / n + d (c + g n / 2),

least at n = sqrt(2 c p / (d g)), the economic order quantity (F. W. Harris, 1913), which means a
growth of g n = sqrt(2 c p g / d) tokens. Growing further saves less prefill than it costs decode,
and shows programs that a compaction would have dropped. Compacting sooner buys fresher programs
with prefill. ``bench/cache.py`` prints p and d; ``docs/measured.md`` says what follows from them
for the default.

Covers: who joins and who stays. Does not cover how programs look in a prompt, or their tokens:
``size`` is the caller's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.core import Candidate, Direction
from engine.search.roster import best_of, normalised

DIVERSITY = 0.5
"""Weight of being different, against being good, when the window is compacted; from 0 to 1."""


@dataclass(kw_only=True)
class Window:
    """The programs shown; `advance` it once for each iteration that is over.

    Attributes:
        kept: the most that the window holds after a compaction, in the unit of ``size``.
        growth: by how much it may then grow.
        size: of a program's text.
        direction: of the scores.
        shown: the programs.
        compactions: how many there were.
    """

    kept: int
    growth: int
    size: Callable[[str], int]
    direction: Direction
    shown: tuple[Candidate, ...] = ()
    compactions: int = 0

    def advance(self, candidates: Sequence[Candidate]) -> None:
        """Take in the valid children of the iteration that is over now.

        The best of them joins if its score is not shown yet, and it either fits into what a
        compaction keeps or is better than the worst program shown. Any other child teaches nothing
        new. A program that is too long for any compaction does not join.
        """
        if not candidates or not self.kept:
            return
        best = best_of(candidates, self.direction)
        if self.size(best.program) > self.kept or (self.shown and not self._is_news(best)):
            return
        self.shown += (best,)
        if self._sizes(self.shown) > self.kept + self.growth:
            self.shown = self._compacted()
            self.compactions += 1

    def _is_news(self, candidate: Candidate) -> bool:
        scores = {each.score for each in self.shown}
        if candidate.score in scores:
            return False
        if self._sizes((*self.shown, candidate)) <= self.kept:
            return True
        return any(self.direction.better(candidate.score, than=score) for score in scores)

    def _compacted(self) -> tuple[Candidate, ...]:
        """Return the best program and those that are good and unlike the others that stay.

        Greedy, as in maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998): each time
        the program with the largest (1 - w) s + w d, s its score from 0 (worst) to 1 (best) and d
        its smallest distance from those chosen, w = `DIVERSITY`. What stays keeps its order.
        """
        scores = dict(zip(self.shown, normalised(self.shown, self.direction), strict=True))
        chosen = [best_of(self.shown, self.direction)]
        room = self.kept - self.size(chosen[0].program)
        left = [each for each in self.shown if each is not chosen[0]]
        lines = {each: _lines(each.program) for each in self.shown}
        distance = {each: 1.0 for each in left}
        while left:
            for each in left:
                distance[each] = min(distance[each], _distance(lines[each], lines[chosen[-1]]))
            pick = max(left, key=lambda e: (1 - DIVERSITY) * scores[e] + DIVERSITY * distance[e])
            left.remove(pick)
            if self.size(pick.program) <= room:
                chosen.append(pick)
                room -= self.size(pick.program)
        return tuple(each for each in self.shown if each in chosen)

    def _sizes(self, candidates: Sequence[Candidate]) -> int:
        return sum(self.size(each.program) for each in candidates)


def _lines(program: str) -> frozenset[str]:
    return frozenset(line.strip() for line in program.splitlines())


def _distance(lines: frozenset[str], others: frozenset[str]) -> float:
    """Return the Jaccard distance of two programs' sets of lines, from 0 (equal) to 1."""
    return 1 - len(lines & others) / len(lines | others) if lines | others else 0.0


def first_that_fit(
    candidates: Sequence[Candidate], *, room: int, size: Callable[[str], int]
) -> tuple[Candidate, ...]:
    """Return candidates in their order, leaving out each that does not fit beside those before it.

    Args:
        candidates: the most important first.
        room: what there is for all of them, in the unit of ``size``.
        size: of a program's text.
    """
    chosen: list[Candidate] = []
    for each in candidates:
        if size(each.program) <= room:
            room -= size(each.program)
            chosen.append(each)
    return tuple(chosen)


def best_that_fit(
    candidates: Sequence[Candidate], *, room: int, size: Callable[[str], int], direction: Direction
) -> tuple[Candidate, ...]:
    """Return the best candidates, the worst of them first, up to the first that does not fit.

    Args:
        candidates: of equal scores the earlier counts as the better.
        room: what there is for all of them, in the unit of ``size``.
        size: of a program's text.
        direction: of the scores.
    """
    ordered = sorted(
        candidates, key=lambda each: each.score, reverse=direction is Direction.MAXIMISE
    )
    chosen: list[Candidate] = []
    for each in ordered:
        room -= size(each.program)
        if room < 0:
            break
        chosen.append(each)
    return tuple(reversed(chosen))
