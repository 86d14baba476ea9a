"""A run: its parts joined, from its first programs or from where its log ends, to its end.

    with Run.start(config.resolve(["problem=signal"])) as run:
        history = run.evolve()

The command line, the benchmarks and the tests all run what this module joins. Does not cover the
parts (``engine.parts``), or what is printed and written at the end (``engine.run``).
"""

import gc
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import engine
from engine import config
from engine.advisor import AdvisedRequests, advised_answers, key_of
from engine.beginning import Restored, archive_features, first_events, restore, told_cascade
from engine.budget import Account, Allowance
from engine.core import Problem, UserError
from engine.evaluation import Cascade
from engine.inference import Decoder, Model, find_weights, most_at_once
from engine.learning import (
    ADAPTERS,
    Learner,
    TrainerProcess,
    check_learning,
    group_of,
    own_answer,
    rewards_of,
)
from engine.loop import Loop
from engine.parts import Parts, open_parts, read_problem, settled
from engine.pipeline import BackPressure, Calls, LoadWatch, Reader, Requests
from engine.pool import read_pool
from engine.prompts import Operator
from engine.settings import RunSettings
from engine.speculation import SpeculativeCalls
from engine.store import Event, EventLog, RunHistory, Session, Verdict, create_run, replay
from engine.timeline import TIMELINE, Timeline

Watch = Callable[[RunHistory], AbstractContextManager[Callable[[], object]]]


def _unwatched(history: RunHistory) -> AbstractContextManager[Callable[[], object]]:
    """Show nobody what becomes of a run."""
    return nullcontext(lambda: None)


@dataclass(kw_only=True)
class Run:
    """One run. `start` and `resume` make it, and hold its log and its parts.

    Attributes:
        settings: the run's.
        problem: the run's.
        log: holds its first events at least.
        folder: for the timeline.
        parts: that it works with; None if its budget is spent.
        history: what the log adds up to.
    """

    settings: RunSettings
    problem: Problem
    log: EventLog
    folder: Path
    parts: Parts | None
    history: RunHistory = field(init=False)

    def __post_init__(self) -> None:
        self.history = replay(self.log.events(), self.problem.direction)

    @classmethod
    @contextmanager
    def start(cls, settings: RunSettings) -> Iterator["Run"]:
        """Begin a run. Its folder appears once everything that can fail early has not.

        Raises:
            UserError: the folder exists, or something does not suit the run's settings.
        """
        folder = Path(settings.runs) / (settings.name or _default_name(settings))
        if folder.exists():
            raise UserError(f"{folder} exists; give another name=, or go on with resume={folder}")
        problem = read_problem(settings)
        archive_features(settings, problem)  # before anything is started
        key_of(settings.advisor)
        pool = settings.pool
        reading = read_pool(pool.sources, problem=problem, most_of_run=pool.most_of_run)
        with open_parts(settings, problem) as parts:
            events = [begun_session(0, problem), *first_events(settings, parts, reading)]
            _check_learning(settings, problem, events)
            settings = settled(settings)  # a run that goes on does so in the format it began with
            create_run(folder, write_config=lambda path: config.save(settings, path), events=events)
            with EventLog(folder, session=0) as log:
                yield cls(settings=settings, problem=problem, log=log, folder=folder, parts=parts)

    @classmethod
    @contextmanager
    def resume(cls, folder: Path) -> Iterator["Run"]:
        """Go on with the run in a folder, to the budget that it began with.

        Raises:
            UserError: the folder is no run, or what it is a run of has changed.
        """
        settings = config.load_run(folder)
        problem = read_problem(settings)
        with EventLog(folder) as log:
            run = cls(settings=settings, problem=problem, log=log, folder=folder, parts=None)
            if run.history.sessions[0].fingerprint != problem.fingerprint:
                raise UserError(
                    f"{problem.folder}, its data or a kernel of its has changed since {folder} "
                    "began, so scores would not compare; bring the files back, or start a new run"
                )
            if run.is_over:
                yield run
                return
            key_of(settings.advisor)  # before anything is started
            with open_parts(settings, problem) as run.parts:
                yield run

    @property
    def is_over(self) -> bool:
        """Whether the budget is spent and nothing is left to be evaluated."""
        return Account(self.settings.budget, self.history).is_closed

    def evolve(
        self,
        *,
        stopped: Callable[[], bool] = lambda: False,
        watch: Watch = _unwatched,
        drains: bool = False,
    ) -> RunHistory:
        """Run the loop until the budget is spent, or to an end in good order that is asked for.

        Args:
            stopped: whether the user asks for an end.
            watch: given the history, returns what is called whenever an event was added to it, as
                a context manager that is held as long.
            drains: whether the verdicts that are out when the user asks for an end are waited for;
                if not, a run that goes on has those candidates evaluated again.
        """
        parts = self.parts
        if parts is None or self.is_over:
            return self.history
        bell = threading.Event()
        with training(self, parts, notify=bell.set) as trainer:  # it starts while the model loads
            restored = restore(self.settings, self.problem, list(self.log.events()), parts.model)
            self.history = restored.state.history
            learner = None if trainer is None else learner_of(self, trainer)
            self._evolve(
                parts=parts,
                restored=restored,
                learner=learner,
                bell=bell,
                stopped=stopped,
                watch=watch,
                drains=drains,
            )
        return self.history

    def _evolve(
        self,
        *,
        parts: Parts,
        restored: Restored,
        learner: Learner | None,
        bell: threading.Event,
        stopped: Callable[[], bool],
        watch: Watch,
        drains: bool,
    ) -> None:
        state, settings = restored.state, self.settings
        cascade = told_cascade(settings, self.problem, state.history, parts.evaluators)

        def record(event: Event) -> None:
            state.fold(self.log.append(event))
            if learner is not None:
                learner.fold(event)
            update()

        def commit() -> None:
            for step in learner.completed() if learner is not None else ():
                record(step)
            self.log.commit()

        with Timeline(self.folder / TIMELINE) as timeline, watch(state.history) as update:
            parts.evaluators.watch(timeline)
            parts.evaluators.announce_to(bell.set)
            if self.log.session > 0:
                record(begun_session(self.log.session, self.problem))
                self.log.commit()
            gc.collect()
            gc.freeze()  # a model leaves millions of objects, which no collection is to walk again
            evolve(
                settings=settings,
                restored=restored,
                record=record,
                commit=commit,
                operators=parts.operators(settings),
                model=parts.model,
                syntax=parts.syntax,
                evaluator=cascade,
                stopped=stopped,
                timeline=timeline,
                bell=bell,
                serve=None if learner is None else learner.serve,
                drains=drains,
            )


def evolve(
    *,
    settings: RunSettings,
    restored: Restored,
    record: Callable[[Event], None],
    commit: Callable[[], None],
    operators: Mapping[str, Operator],
    model: Model,
    syntax: Executor,
    evaluator: Cascade,
    stopped: Callable[[], bool],
    timeline: Timeline,
    bell: threading.Event,
    serve: Callable[[Decoder], object] | None = None,
    drains: bool = False,
) -> None:
    """Run the loop until the budget is spent or the user asks for an end.

    Args:
        settings: the run's.
        restored: the run as far as it is recorded; ``record`` keeps its state up to date.
        record: appends an event to the log and folds it into the state.
        commit: brings what was recorded to disk.
        operators: by name.
        model: the language model; nobody else steps it while the loop runs.
        syntax: processes that parse what the model answers.
        evaluator: runs and scores candidates; has been told everything that is recorded.
        stopped: whether the user asked for an end.
        timeline: records what the model does and waits for.
        bell: rings when the evaluator has a verdict; the decoder rings it too.
        serve: called with the decoder, to which a learner hands its adapters; None without one.
        drains: see `Run.evolve`.
    """
    state, pipeline, novelty = restored.state, settings.pipeline, settings.search.novelty
    pressure = BackPressure(
        settings=pipeline,
        most_children=most_at_once(settings.model),
        workers=settings.evaluation.workers,
    )
    allowance = Allowance(settings.budget, state.history)
    with Decoder(model=model, timeline=timeline, notify=bell.set) as decoder:
        if serve is not None:
            serve(decoder)
        requests = (AdvisedRequests if settings.advisor.enabled else Requests)(
            settings=settings,
            history=state.history,
            operators=operators,
            block_size=model.block_size,
            decoder=decoder,
            syntax=syntax,
            timeline=timeline,
            notify=bell.set,
        )
        reader = Reader(
            search=state.search,
            tokenizer=model,
            longest_parent=min(each.longest_parent for each in operators.values()),
            novelty=None if novelty is None else novelty.make(),
        )
        kind: Callable[..., Calls] = Calls
        if pipeline.overlap and pipeline.speculate:
            kind = partial(SpeculativeCalls, settings=settings, reader=reader, allowance=allowance)
        calls = kind(
            state=state,
            record=record,
            requests=requests,
            pressure=pressure,
            overlap=pipeline.overlap,
        )
        calls.begin_again(restored.unfinished)
        Loop(
            state=state,
            record=record,
            commit=commit,
            calls=calls,
            reader=reader,
            evaluator=evaluator,
            allowance=allowance,
            stopped=stopped,
            watch=LoadWatch(
                pressure=pressure, load=model.load, requests=requests, history=state.history
            ),
            timeline=timeline,
            bell=bell,
            drains=drains,
        ).run()


def training(
    run: Run, parts: Parts, *, notify: Callable[[], object]
) -> AbstractContextManager[TrainerProcess | None]:
    """Start what trains the run's model, to be held; None if nothing does."""
    settings, adapter = run.settings, run.history.adapter
    if settings.learning.method == "none":
        return nullcontext()
    checkpoint = run.folder / ADAPTERS / f"{adapter:06}" if adapter else None
    return parts.trainer(settings, checkpoint=checkpoint, notify=notify)


def learner_of(run: Run, trainer: TrainerProcess) -> Learner:
    """Return what learns from a run whose model is loaded, told everything that is recorded."""
    settings, history = run.settings, run.history
    rewards = rewards_of(settings.learning, problem=run.problem, history=history)
    answers = advised_answers if settings.advisor.enabled else own_answer
    trainer.load()
    learner = Learner(
        settings=settings.learning,
        history=history,
        folder=run.folder,
        make_group=partial(group_of, rewards=rewards, answers_of=answers),
        trainer=trainer,
        progress=lambda: Account(settings.budget, history).share,
    )
    for recorded in run.log.events():
        learner.fold(recorded.event)
    return learner


def begun_session(number: int, problem: Problem) -> Session:
    """Return the event that says that this process began to work on a run."""
    return Session(number=number, engine=engine.__version__, fingerprint=problem.fingerprint)


def _check_learning(settings: RunSettings, problem: Problem, events: Sequence[Event]) -> None:
    """Check, before there is a folder, that a run which is to learn can."""
    if settings.learning.method != "none":
        initial = next(each.score for each in events if isinstance(each, Verdict))
        assert initial is not None  # or it could not begin
        weights = find_weights(settings.model)
        check_learning(settings.learning, problem=problem, initial=initial, weights=weights)


def _default_name(settings: RunSettings) -> str:
    problem, now = Path(settings.problem).name, time.strftime("%Y%m%d-%H%M%S")
    return f"{problem}-{settings.model.name}-s{settings.seed}-{now}"
