"""Living through a schedule: a run over as many sessions as its faults give it.

The log, the search, the prompts, the cascade, the decoder with its thread, and the requests in the
run's folder are the real ones. A session that ``kill -9`` ends has a process of its own, which dies
within a transaction of SQLite's or right behind it; in the others an exception stands for a death.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

from chance_model import OPERATORS, Asked, Doubtful, Model, StepError
from dying import Send, are_gone, dies_here, in_a_process, of_the_disk
from fault_lists import KILLS, Fate, Fault, Kind
from inline import Inline
from late_pool import LatePool
from looping import evolve
from schedules import Schedule

from engine.beginning import Restored, archive_features, restore, told_cascade
from engine.core import INITIAL, Evaluation, Problem, UserError
from engine.evaluation.cascade import StagePool
from engine.pipeline import RunState
from engine.search.features import cell_of
from engine.settings import RunSettings
from engine.steering import Request, Steering, leave
from engine.store import (
    Event,
    EventLog,
    Recorded,
    RunHistory,
    Session,
    Verdict,
    create_run,
    read_log,
)
from engine.syntax import read
from engine.timeline import TIMELINE, Timeline

_HANGS = 120.0  # seconds that no session has taken, however busy the machine
_PATIENCE = 0.02  # seconds for which the user waits for a verdict that does not come
_LEAP = 3600.0  # seconds by which the clock leaps
_TURNS = 3  # of the loop for which a run that is to pause is left alone
OpenPool = Callable[["Living", Callable[[], object]], AbstractContextManager[StagePool]]
"""Opens the evaluators of a session, given what they ring when a verdict is in."""


class Death(Exception):
    """The process dies here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """A program as the evaluators were given it: in which session, and for which stage."""

    session: int
    candidate: str
    stage: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Life:
    """A run from its beginning to its end.

    Attributes:
        settings: those of its last session.
        events: all that is in its log.
        state: as the last session left it.
        asked: all calls that the model was given, by the number that their answers begin with.
        submitted: all programs that the evaluators were given.
        steps: of the model in which it had children to write.
        due: candidates that are to be evaluated: the budget, or what was admitted before it shrank.
        befallen: the faults that came to pass.
    """

    settings: RunSettings
    events: list[Recorded]
    state: RunState
    asked: list[Asked]
    submitted: list[Submission]
    steps: int
    due: int
    befallen: list[Fault]

    @property
    def history(self) -> RunHistory:
        """The run's, as the last session left it."""
        return self.state.history


@dataclass(kw_only=True)
class Living:
    """A run that is being lived through."""

    schedule: Schedule
    problem: Problem
    folder: Path
    open_pool: OpenPool
    settings: RunSettings
    rng: random.Random
    fate: Fate
    clock: Clock
    session: int = 0
    asked: list[Asked] = field(default_factory=list)
    submitted: list[Submission] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)
    steps: int = 0
    floor: int = 0
    state: RunState | None = None
    send: Send = lambda value: None

    def note_asked(self, asked: Asked) -> int:
        """Note a call; return its number."""
        self.asked.append(asked)
        self.send(asked)
        return len(self.asked) - 1

    def note_submitted(self, candidate: str, stage: int) -> None:
        """Note that the evaluators are given a program."""
        noted = Submission(session=self.session, candidate=candidate, stage=stage)
        self.submitted.append(noted)
        self.send(noted)

    def note_process(self, process: int) -> None:
        """Note a process that is to end with the session that started it."""
        self.processes.append(process)
        self.send(process)

    def go_through(self) -> None:
        """Live through all sessions."""
        while True:
            self.fate.begin_session()
            if self.fate.end not in KILLS:
                if self._live_a_session():
                    return
            elif in_a_process(self._live_elsewhere, take=self._take):
                self.fate.end_all()  # the budget came before the death
            assert are_gone(self.processes)
            self.session += 1

    def _live_elsewhere(self, send: Send) -> None:
        """Live through a session in a process of its own."""
        self.send = send
        self.fate.tell = lambda: send(Kind)
        self._live_a_session()

    def _take(self, value: object) -> None:
        """Take in what a session said that had a process of its own."""
        if isinstance(value, Asked):
            self.asked.append(value)
        elif isinstance(value, Submission):
            self.submitted.append(value)
        elif isinstance(value, int):
            self.processes.append(value)
        else:
            self.fate.pass_over()

    def _live_a_session(self) -> bool:
        """Live through one session; return whether nothing but the budget has ended it."""
        with EventLog(self.folder, session=self.session) as log, of_the_disk(self.fate):
            model = Model(
                context=self.schedule.context,
                step=self.schedule.step,
                rng=self.rng,
                number=self.session,
                fate=self.fate,
                note=self.note_asked,
            )
            restored = restore(self.settings, self.problem, list(log.events()), model)
            self.state = restored.state
            bell = threading.Event()
            recorder = Recorder(self, log, ring=bell.set)
            if self.session:
                recorder.record(Session(number=self.session, engine="0", fingerprint="f"))
            try:
                self._loop(log, restored, recorder, model, bell)
            except (Death, StepError):
                assert self.fate.last in (Kind.RECORD, Kind.RECORDED, Kind.STEP)
            except UserError as error:
                assert self.fate.last is Kind.FULL and "make room" in str(error)
            else:
                return self.fate.last is None
            finally:
                self.steps += model.steps
        return False

    def _loop(
        self,
        log: EventLog,
        restored: Restored,
        recorder: Recorder,
        model: Model,
        bell: threading.Event,
    ) -> None:
        settings = self.settings
        operators = {
            name: kind(
                problem=self.problem, tokenizer=model, max_tokens=500, prompts=settings.prompts
            )
            for name, kind in OPERATORS.items()
            if name in settings.search.operators
        }
        for operator in operators.values():
            if isinstance(operator, Doubtful):
                operator.share = self.schedule.ended
        parts: dict[str, Any] = {"model": model}
        steering = Steering(folder=self.folder, leave_out=log.leave_out)
        with (
            Timeline(self.folder / TIMELINE) as timeline,
            self.open_pool(self, bell.set) as pool,
        ):
            recorder.is_steered = lambda: steering.is_stopped
            evolve(
                syntax=Inline(),
                settings=settings,
                restored=restored,
                record=recorder.record,
                commit=recorder.commit,
                operators=operators,
                evaluator=told_cascade(settings, self.problem, restored.state.history, pool),
                stopped=recorder.is_stopped,
                timeline=timeline,
                bell=bell,
                steering=steering,
                **parts,
            )
        steering.end()

    def give_another_budget(self, amount: int) -> None:
        """Have the next session go on to another number of candidates."""
        assert self.state is not None
        budget = self.settings.budget
        if budget.candidates is not None:
            self.floor = max(self.floor, self.state.history.admitted)
            changed = replace(budget, candidates=max(1, budget.candidates + amount))
            self.settings = replace(self.settings, budget=changed)


class Recorder:
    """Writes events, and has the faults befall the run that stand between two of them."""

    def __init__(self, living: Living, log: EventLog, *, ring: Callable[[], object]) -> None:
        assert living.state is not None
        self._living = living
        self._log = log
        self._fold = living.state.fold
        self._ring = ring
        self._fate = living.fate
        self._deadline = time.perf_counter() + _HANGS
        self._turns = 0  # until a run that is paused may go on
        self.is_steered: Callable[[], bool] = lambda: False

    def record(self, event: Event) -> None:
        # The first event of a later session stands in no loop.
        dies = not isinstance(event, Session)
        if dies and self._fate.befalls(Kind.RECORD):
            raise Death
        recorded = self._log.append(event)
        self._fate.note_event()
        if dies and self._fate.befalls(Kind.RECORDED):
            raise Death
        self._fold(recorded)

    def commit(self) -> None:
        self._log.commit()
        if self._fate.befalls(Kind.COMMITTED):
            dies_here()

    def is_stopped(self) -> bool:
        """Let befall the run what users and clocks do; return whether its end is asked for."""
        assert time.perf_counter() < self._deadline, "the loop waits for nothing"
        self._steer()
        if self._fate.befalls(Kind.JUMP):
            self._living.clock.ahead += _LEAP
        self._fate.befalls(Kind.STOP)
        if fault := self._fate.befalls(Kind.BUDGET):
            self._living.give_another_budget(fault.amount)
        last = self._fate.last
        if last is Kind.NEVER:
            return time.perf_counter() > self._fate.since + _PATIENCE
        return last in (Kind.STOP, Kind.BUDGET) or self.is_steered()

    def _steer(self) -> None:
        folder = self._living.folder
        if self._turns:
            self._turns -= 1
            self._ring()
            if not self._turns:
                leave(folder, Request(kind="resume"))
        if self._fate.befalls(Kind.PAUSE):
            leave(folder, Request(kind="pause"))
            self._turns = _TURNS
            self._ring()
        if self._fate.befalls(Kind.HINT):
            leave(folder, Request(kind="hint", text="Think of tides."))
        if self._fate.befalls(Kind.ASKED):
            leave(folder, Request(kind="stop"))
            self._ring()


class Clock:
    """A monotonic clock that may leap."""

    def __init__(self) -> None:
        self._real = time.monotonic
        self.ahead = 0.0

    def __call__(self) -> float:
        return self._real() + self.ahead


@contextmanager
def late_pool(living: Living, ring: Callable[[], object]) -> Iterator[StagePool]:
    """Open evaluators that run nothing."""
    with LatePool(
        seconds=living.schedule.verdict,
        rng=living.rng,
        fate=living.fate,
        ring=ring,
        note=living.note_submitted,
    ) as pool:
        yield pool


def live(
    schedule: Schedule, problem: Problem, folder: Path, *, open_pool: OpenPool = late_pool
) -> Life:
    """Go through a run from its beginning to its end."""
    problem = replace(problem, stages=problem.stages[-schedule.stages :])
    first = Evaluation(score=0.5, failure=None, metrics={"score": 0.5, "quick.score": 0.5})
    create_run(
        folder,
        write_config=lambda path: path.touch(),
        events=[
            Session(number=0, engine="0", fingerprint="f"),
            first_verdict(schedule.settings, problem, first),
        ],
    )
    clock = Clock()
    living = Living(
        schedule=schedule,
        problem=problem,
        folder=folder,
        open_pool=open_pool,
        settings=schedule.settings,
        rng=random.Random(f"chance of {schedule.settings.seed}"),
        fate=Fate(schedule.faults),
        clock=clock,
    )
    with mock.patch.object(time, "monotonic", clock):
        living.go_through()
    assert living.state is not None
    return Life(
        settings=living.settings,
        events=list(read_log(folder)),
        state=living.state,
        asked=living.asked,
        submitted=living.submitted,
        steps=living.steps,
        due=max(living.settings.budget.candidates or 0, living.floor),
        befallen=living.fate.befallen,
    )


def quiet_model(schedule: Schedule) -> Model:
    """Return a model of the schedule's that nobody asks: for its tokens."""
    return Model(
        context=schedule.context,
        step=0.0,
        rng=random.Random(0),
        number=0,
        fate=Fate(()),
        note=lambda asked: 0,
    )


def first_verdict(settings: RunSettings, problem: Problem, evaluation: Evaluation) -> Verdict:
    """Return the verdict on a small initial program, in its cell."""
    program = "def f(x):\n    return x\n"
    cell = cell_of(read(program), evaluation, features=archive_features(settings, problem))
    return Verdict(candidate=INITIAL, evaluation=evaluation, program=program, cell=cell)
