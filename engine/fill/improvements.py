"""Better solutions of the best programs, found by their own functions, as fills.

ImprovEvolve (Kravatskiy et al., 2026, section 3): a solution is perturbed and improved again and
again, with an intensity that falls, and the best one is kept: basin hopping, whose two steps the
programs bring along. Each hop is a program: the one that is improved, and an entry point that
begins at the best solution so far, which it holds as numbers. Such a program becomes no parent: its
score says what its solution is worth, and not its code.
"""

import ast
from collections.abc import Sequence
from functools import partial

from engine.core import IMPROVE, PERTURB, Array, Candidate, Direction, Improvement
from engine.fill.maker import Idea, chance, number_of, verdict_of
from engine.fill.solutions import Solutions
from engine.search.search import Search
from engine.settings import FillSettings
from engine.store import RunHistory
from engine.syntax import read
from engine.syntax.tree import copy_of

IMPROVEMENT = "improvement"
_LOOK = -1  # the sample that asks for a solution whose score is known
_CYCLE = 10  # hops in which the intensity falls from 1 to a tenth


class Improvements:
    """Improves the best solution of one program after the other, the best program first."""

    def __init__(
        self,
        search: Search,
        *,
        history: RunHistory,
        settings: FillSettings,
        contract: Improvement,
        entry_point: str,
        solutions: Solutions,
        workers: int,
        seed: int,
    ) -> None:
        """Go on where the recorded fills end.

        Args:
            search: knows the programs.
            history: of the run, with all fills so far.
            settings: the run's.
            contract: the problem's.
            entry_point: the problem's.
            solutions: behind the scores that are told.
            workers: hops of a program that are evaluated at once.
            seed: the run's.
        """
        self._search = search
        self._history = history
        self._settings = settings
        self._contract = contract
        self._entry_point = entry_point
        self._solutions = solutions
        self._workers = workers
        self._seed = seed
        fills = [each for each in history.fills.values() if each.maker == IMPROVEMENT]
        self._begun = {each.parent for each in fills}
        self._hops: _Hops | None = None
        if fills:
            last = fills[-1]
            self._hops = self._of(last.parent, last.island)
            for each in fills:
                if each.parent == last.parent:
                    self._hops.asked = max(self._hops.asked, each.sample + 1)
                    verdict = verdict_of(each, search=search, history=history)
                    if verdict is None:
                        self._hops.out[each.sample] = each.program.text
                    else:
                        self._hops.keep(each.program.text, verdict.score)

    def propose(self) -> Idea | None:
        """See `Maker`."""
        if self._hops is None or self._hops.is_over:
            self._hops = self._next()
        hops = self._hops
        if hops is None or hops.is_looking or len(hops.out) >= self._workers or hops.asks_no_more:
            return None
        if hops.solution is None:
            hops.is_looking = True
            return self._idea(hops, _LOOK, hops.text, is_known=True)
        sample, hops.asked = hops.asked, hops.asked + 1
        text = continued(
            hops.program,
            entry_point=self._entry_point,
            solution=hops.solution,
            intensity=1 - sample % _CYCLE / _CYCLE,
            effort=self._contract.effort,
            seed=int(chance(self._seed, number_of(hops.parent), sample).integers(2**31)),
        )
        hops.out[sample] = text
        return self._idea(hops, sample, text, is_known=False)

    def tell(self, parent: str, sample: int, score: float | None) -> None:
        """See `Maker`."""
        hops = self._hops
        if hops is None or hops.parent != parent:
            return
        found = None if score is None else self._solutions.of(score)
        if sample == _LOOK:
            hops.is_looking = False
            if hops.solution is None:  # else a hop of before a resume has found a better one
                hops.begin_at(found)
            return
        if hops.keep(hops.out.pop(sample), score):
            hops.begin_at(found)

    def _idea(self, hops: "_Hops", sample: int, text: str, *, is_known: bool) -> Idea:
        return Idea(
            maker=IMPROVEMENT,
            parent=hops.parent,
            island=hops.island,
            sample=sample,
            make=partial(read, text),
            joins=False,
            is_known=is_known,
        )

    def _next(self) -> "_Hops | None":
        best = [
            (each, island)
            for island in range(self._search.islands)
            for each in self._search.best(island, most=self._settings.parents)
            if self._may_improve(each)
        ]
        if not best:
            return None
        key = self._search.direction.key
        parent, island = min(best, key=lambda each: key(each[0].score))
        self._begun.add(parent.id)
        return self._of(parent.id, island)

    def _may_improve(self, candidate: Candidate) -> bool:
        if candidate.id in self._begun:
            return False
        if defines(candidate.program, IMPROVE) and defines(candidate.program, PERTURB):
            return True
        self._begun.add(candidate.id)
        return False

    def _of(self, parent: str, island: int) -> "_Hops":
        score = self._history.verdicts[parent].score
        assert score is not None  # or it had been nobody's parent
        return _Hops(
            parent=parent,
            island=island,
            program=self._history.program_of(parent),
            score=score,
            direction=self._search.direction,
            most=self._settings.hops,
        )


class _Hops:
    """The hops from one program's solution."""

    def __init__(
        self,
        *,
        parent: str,
        island: int,
        program: str,
        score: float,
        direction: Direction,
        most: int,
    ) -> None:
        self.parent = parent
        self.island = island
        self.program = program
        self.text = program  # whose solution is the best
        self.solution: Sequence[Array] | None = None  # of it; None if nobody has looked
        self.is_looking = False
        self.asked = 0
        self.out: dict[int, str] = {}  # programs of the hops that are out
        self._score = score
        self._direction = direction
        self._most = most

    @property
    def asks_no_more(self) -> bool:
        """Whether the last hop has been asked for."""
        return self.asked >= self._most

    @property
    def is_over(self) -> bool:
        """Whether the last hop is back."""
        return self.asks_no_more and not self.out and not self.is_looking

    def keep(self, text: str, score: float | None) -> bool:
        """Take in what a program's solution is worth; return whether it is the best one."""
        if score is None or not self._direction.better(score, than=self._score):
            return False
        self._score, self.text, self.solution = score, text, None
        return True

    def begin_at(self, solution: Sequence[Array] | None) -> None:
        """Hop from a solution; from none, not at all."""
        if solution is None:
            self.asked = self._most
        else:
            self.solution = solution


def continued(
    program: str,
    *,
    entry_point: str,
    solution: Sequence[Array],
    intensity: float,
    effort: int,
    seed: int,
) -> str:
    """Return a program with an entry point that perturbs a solution and improves it.

    Args:
        program: that defines both functions.
        entry_point: name of the function.
        solution: the arrays, which are written into the program with all their digits.
        intensity, effort, seed: as in `Improvement`.
    """
    arrays = "".join(f"        numpy.array({each.tolist()!r}),\n" for each in solution)
    return (
        f"{program.rstrip()}\n\n\n"
        f"def {entry_point}():\n"
        '    """Improve a solution that was found before."""\n'
        "    import numpy\n\n"
        f"    found = (\n{arrays}    )\n"
        f"    found = {PERTURB}(*found, intensity={intensity:.2g}, seed={seed})\n"
        f"    return {IMPROVE}(*found, effort={effort}, seed={seed})\n"
    )


def defines(program: str, function: str) -> bool:
    """Return whether a program has a function at its top."""
    return any(
        isinstance(node, ast.FunctionDef) and node.name == function
        for node in copy_of(program).body
    )
