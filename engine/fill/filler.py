"""The filler: keeps idle evaluators busy, and the loop informed.

The loop records the verdicts that `completed` yields and the fills that `made` yields, and calls
`send` once these are on disk. Nothing of that waits, and the loop may leave off behind each: what
was not yielded comes the next time.

The way of an idea: a maker proposes it, and a process makes its program (``_making``). That is

- nothing: its maker is told so;
- a program with a score, whose solution is wanted (``_known``, and ``_looks`` once it is sent);
- a known program, whose verdict its maker is told once it is there (``_copies``);
- a new one: a fill, which is yielded to be recorded (``_recorded``), sent (``_out``) and judged
  (``_arrived``). Where a child that is the same program has taken its place meanwhile, it is
  withdrawn: it gets no verdict, and goes on as one of ``_copies``.
"""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from engine.core import Evaluation, Fill, Problem, Program, UserError
from engine.fill.evaluators import MOST_AHEAD, IdleEvaluators
from engine.fill.improvements import Improvements
from engine.fill.maker import Idea, Maker, spent, verdict_of
from engine.fill.mutations import MUTATION, Mutations
from engine.fill.tunings import TUNING, Tunings
from engine.pipeline import RunState
from engine.settings import FillSettings

_AHEAD_FIRST = 16
"""Fills for each evaluator that are under way. Their verdicts wake nobody: the loop takes them when
it has something else to do, and a few times a second. When it finds an evaluator idle by then,
twice as many go ahead from there on, up to `MOST_AHEAD`: programs of a millisecond need hundreds,
slow ones few. One is enough: that of the model's core may be at one program while the model
decodes."""
_OFTEN = 1.0  # seconds between two looks; after a pause nobody knows when they became idle
_log = logging.getLogger("brood")


class Filler:
    """See the module. One thread uses it."""

    def __init__(
        self,
        *,
        settings: FillSettings,
        state: RunState,
        problem: Problem,
        evaluators: IdleEvaluators,
        fits: Callable[[Program], bool],
        seed: int,
    ) -> None:
        """Go on where the log ends: fills without a verdict are evaluated again.

        Args:
            settings: the run's.
            state: the run as far as it is recorded, which others keep up to date.
            problem: the run's.
            evaluators: and what makes programs for them; nobody else uses them.
            fits: whether every operator's prompt has room for a program.
            seed: the run's.
        """
        history, search = state.history, state.search
        self._makers: dict[str, Maker] = {}
        for name in settings.makers:
            if name == MUTATION:
                self._makers[name] = Mutations(
                    search, history=history, settings=settings, seed=seed
                )
            elif name == TUNING:
                self._makers[name] = Tunings(
                    search,
                    history=history,
                    settings=settings,
                    seed=seed,
                    entry=problem.entry_point,
                )
            elif problem.improvement is not None and evaluators.solutions is not None:
                self._makers[name] = Improvements(
                    search,
                    history=history,
                    settings=settings,
                    contract=problem.improvement,
                    entry_point=problem.entry_point,
                    solutions=evaluators.solutions,
                    workers=evaluators.workers,
                    seed=seed,
                )
        self._fits = fits
        self._history, self._search = history, search
        self._evaluators, self._workers = evaluators.pool, evaluators.workers
        self._ahead, self._most_ahead = (
            each * evaluators.workers for each in (_AHEAD_FIRST, MOST_AHEAD)
        )
        self._syntax = evaluators.syntax
        self._number = len(history.fills)
        self._turn = 0  # of the makers
        self._making: deque[tuple[Idea, Future[Program | None]]] = deque()
        out = [
            each
            for each in history.fills.values()
            if verdict_of(each, search=search, history=history) is None
        ]
        self._recorded = [each for each in out if not self._is_withdrawn(each)]
        self._out: dict[str, Fill] = {}
        self._known: list[tuple[Idea, Program]] = []
        self._copies: list[tuple[Idea | Fill, Program]] = [  # and what was made before them
            (each, each.program) for each in out if self._is_withdrawn(each)
        ]
        self._looks: dict[str, Idea] = {}
        self._arrived: deque[tuple[str, Evaluation]] = deque()
        self._taken_at = time.monotonic()

    def made(self) -> Iterator[Fill]:
        """Yield the fills that were made since the last time; record each before the next.

        In the order of the ideas: a maker that goes on takes what is not recorded, and was asked
        for before something that is, for an idea that came to nothing.
        """
        self._begin()
        while self._making and self._making[0][1].done():
            idea, future = self._making.popleft()
            program = self._program_of(idea, future)
            if program is None:
                self._makers[idea.maker].tell(idea.parent, idea.sample, None)
            elif idea.is_known:
                self._known.append((idea, program))
            elif self._search.known_as(program) is not None:
                self._copies.append((idea, program))
            else:
                fill = self._fill(idea, program)
                self._recorded.append(fill)
                yield fill
        self._tell_copies()

    def send(self) -> None:
        """Have what is recorded evaluated, and again what somebody wants to look at."""
        for fill in self._recorded:
            self._out[fill.id] = fill
            self._submit(fill.id, fill.program, maker=fill.maker)
        self._recorded.clear()
        for idea, program in self._known:
            name = f"look {idea.parent}"
            self._looks[name] = idea
            self._submit(name, program, maker=idea.maker)
        self._known.clear()

    def _submit(self, name: str, program: Program, *, maker: str) -> None:
        """Queue a program, before those of makers that have used more time."""
        order = math.floor(1e3 * spent(maker, self._history))
        self._evaluators.submit(candidate_id=name, program=program.text, order=order)

    def completed(self) -> Iterator[tuple[str, Evaluation]]:
        """Yield the verdicts on fills that are in; record each before the next.

        Those on fills whose place a child took are dropped: the program's verdict is the child's.
        """
        were_running = self._running
        self._arrived += self._evaluators.completed(timeout=0)
        before, self._taken_at = self._taken_at, time.monotonic()
        is_idle = self._running < self._workers
        if were_running and is_idle and self._taken_at - before < _OFTEN:
            self._ahead = min(2 * self._ahead, self._most_ahead)
        while self._arrived:
            name, evaluation = self._arrived.popleft()
            idea = self._looks.pop(name, None)
            about = self._out.pop(name) if idea is None else idea
            if isinstance(about, Fill) and self._is_withdrawn(about):
                self._copies.append((about, about.program))
                continue
            self._makers[about.maker].tell(about.parent, about.sample, evaluation.score)
            if idea is None:
                yield name, evaluation

    @property
    def _running(self) -> int:
        """How many programs the evaluators have not returned."""
        return len(self._out) + len(self._looks) - len(self._arrived)

    def _program_of(self, idea: Idea, future: Future[Program | None]) -> Program | None:
        """Return what an idea came to; None if it is nothing.

        Raises:
            UserError: nothing can be made any more.
        """
        error = future.exception()
        if isinstance(error, UserError):
            raise error
        if error is not None:
            _log.warning("a fill could not be made (%s): %s", idea.maker, error)
            return None
        return future.result()

    def _tell_copies(self) -> None:
        """Tell makers what the programs scored that their ideas repeat, once that is known."""
        waiting = []
        for about, program in self._copies:
            verdict = self._history.verdicts.get(self._search.known_as(program) or "")
            if verdict is None:
                waiting.append((about, program))
            else:
                self._makers[about.maker].tell(about.parent, about.sample, verdict.score)
        self._copies = waiting

    def _is_withdrawn(self, fill: Fill) -> bool:
        """Return whether a child took the place of a fill, which gets no verdict then."""
        return self._search.known_as(fill.program) != fill.id

    def _fill(self, idea: Idea, program: Program) -> Fill:
        fill = Fill(
            number=self._number,
            maker=idea.maker,
            parent=idea.parent,
            island=idea.island,
            sample=idea.sample,
            program=program,
            joins=idea.joins and self._fits(program),
        )
        self._number += 1
        return fill

    def _begin(self) -> None:
        """Have as many made as there is room for, of each maker in turn.

        Makers do not share the room by time: that took idle evaluators from mutations for tunings,
        and runs of two minutes found no better programs (docs/log.md, 27 November 2026).
        """
        makers = [*self._makers.values()]
        under_way = len(self._making) + len(self._recorded) + len(self._out)
        failed = 0
        while under_way < self._ahead and failed < len(makers):
            idea = makers[self._turn % len(makers)].propose()
            self._turn += 1
            if idea is None:
                failed += 1
                continue
            failed, under_way = 0, under_way + 1
            self._making.append((idea, self._syntax.submit(idea.make)))
