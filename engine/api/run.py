"""A run: its parts joined, from its first programs or from where its log ends, to its end.

    with Run.of("signal", budget={"seconds": 60}) as run:
        history = run.evolve()

The command line, the benchmarks and the tests all begin here. Does not cover what a run is checked
for before it has a folder (``new_run.py``), the parts (``engine.parts``), how a loop is joined from
them (``engine.assembly``), or what is printed and written at the end (``engine.run``).
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine import config
from engine.advisor import key_of
from engine.api.events import Evolution, Tell
from engine.api.keywords import arguments_of, problem_arguments
from engine.api.new_run import NewRun
from engine.api.recorder import Recorder, Watch, told_nobody, unwatched
from engine.assembly import filler_of, learner_of, loop_of, training
from engine.beginning import Restored, begun_session, check_unchanged, restore, told_cascade
from engine.budget import Account
from engine.collector import collections_put_off, left_alone
from engine.core import Problem, UserError
from engine.inference import Model
from engine.loop import Loop
from engine.parts import Parts, open_parts, read_problem
from engine.paths import expanded
from engine.pipeline import Calls
from engine.settings import RunSettings
from engine.steering import Steering
from engine.store import Event, EventLog, RunHistory, check_goes_on, replay, warn_of_network
from engine.timeline import TIMELINE, Timeline
from engine.watching import check_watching, watched


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
        steering: what others ask of it meanwhile.
        evolution: the loop that `events` runs in a thread; None before.
    """

    settings: RunSettings
    problem: Problem
    log: EventLog
    folder: Path
    parts: Parts | None
    history: RunHistory = field(init=False)
    steering: Steering = field(init=False)
    evolution: Evolution | None = field(init=False, default=None)
    _is_begun: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        with collections_put_off():
            self._recorded = list(self.log.events())
            self.history = replay(self._recorded, self.problem.direction)
        self.steering = Steering(folder=self.folder, leave_out=self.log.leave_out)

    @classmethod
    def of(cls, problem: str | Path | Problem, **settings: Any) -> AbstractContextManager["Run"]:
        """Begin a run of a problem, with settings as keywords.

        Args:
            problem: the name of a shipped one, a folder, or one made by `Problem.of`.
            settings: as on the command line; a mapping stands for the keys below it, as in
                ``model="mutation", budget={"candidates": 50}, seed=1``.

        Raises:
            UserError: a key or value is wrong; see `start` for the rest.
        """
        resolved = config.resolve([*problem_arguments(problem), *arguments_of(settings)])
        return cls.start(resolved, problem=problem if isinstance(problem, Problem) else None)

    @classmethod
    @contextmanager
    def start(
        cls,
        settings: RunSettings,
        *,
        problem: Problem | None = None,
        load: Callable[[], Model] | None = None,
        stored_as: str | None = None,
    ) -> Iterator["Run"]:
        """Begin a run. Its folder appears once everything that can fail early has not.

        Args:
            settings: the run's.
            problem: in place of the one in the settings' folder.
            load: returns the model, which stays open; None to load the settings' and close it.
            stored_as: the run's name where a server has its events; None for its folder's.

        Raises:
            UserError: the folder exists, the islands are to be on a cluster, or something does not
                suit the run's settings.
        """
        if (kind := settings.cluster.kind) != "none":
            raise UserError(
                f"cluster is {kind}, and a run from Python has all its islands in its own process; "
                "leave cluster away, or start the run with `brood run`"
            )
        new = NewRun.checked(settings, problem=problem, stored_as=stored_as)
        with open_parts(new.settings, new.problem, load=load) as parts:
            settings = new.create(parts)
            with EventLog(new.folder, session=0) as log:
                run = cls(
                    settings=settings,
                    problem=new.problem,
                    log=log,
                    folder=new.folder,
                    parts=parts,
                )
                with run.closed_after():
                    yield run

    @classmethod
    @contextmanager
    def resume(
        cls,
        folder: Path | str,
        *,
        changes: Sequence[str] = (),
        problem: Problem | None = None,
        load: Callable[[], Model] | None = None,
    ) -> Iterator["Run"]:
        """Go on with the run in a folder, to the budget that it began with.

        Args:
            folder: the run's.
            changes: of what this machine has elsewhere, as ``key=value``: see
                `engine.config.load_resumed`.
            problem: for a run that began with one made by `Problem.of`: the same, made again.
            load: as in `start`.

        Raises:
            UserError: the folder is no run, or what it is a run of has changed.
        """
        folder = expanded(Path(folder), what="run")
        check_goes_on(folder)
        settings = config.load_resumed(folder, changes=changes)
        problem = problem or read_problem(settings)
        if settings.store is None:
            warn_of_network(folder)
        with EventLog(folder) as log:
            run = cls(settings=settings, problem=problem, log=log, folder=folder, parts=None)
            check_unchanged(problem, run.history.sessions[0], folder=folder)
            if run.is_over:
                yield run
                return
            key_of(settings.advisor)  # before anything is started
            check_watching(settings)
            with open_parts(settings, problem, load=load) as run.parts, run.closed_after():
                yield run

    @property
    def is_over(self) -> bool:
        """Whether the budget is spent and nothing is left to be evaluated."""
        return Account(self.settings.budget, self.history).is_closed

    def evolve(
        self,
        *,
        stopped: Callable[[], bool] = lambda: False,
        watch: Watch = unwatched,
        tell: Tell = told_nobody,
        drains: bool = False,
    ) -> RunHistory:
        """Run the loop until the budget is spent, or to an end in good order that is asked for.

        Args:
            stopped: whether the user asks for an end.
            watch: given the history, returns what is called whenever an event was added to it, as
                a context manager that is held as long.
            tell: called after each commit with the events that are now on disk.
            drains: whether the verdicts that are out when the user asks for an end are waited for;
                if not, a run that goes on has those candidates evaluated again.

        Raises:
            RuntimeError: it is the second time for this value, and the run is not over.
        """
        if self.parts is None or self.is_over:
            return self.history
        bell = threading.Event()
        with self.loop(bell=bell, stopped=stopped, watch=watch, tell=tell, drains=drains) as loop:
            loop.run()
        return self.history

    @contextmanager
    def loop(
        self,
        *,
        bell: threading.Event,
        stopped: Callable[[], bool] = lambda: False,
        watch: Watch = unwatched,
        tell: Tell = told_nobody,
        drains: bool = False,
        calls: Callable[..., Calls] | None = None,
    ) -> Iterator[Loop]:
        """Hold the loop of a run that is not over, and everything that it needs.

        What is opened here closes in the opposite order: the decoder before who watches the run,
        and the trainer last.

        Args:
            bell: rings when there is something to do.
            stopped: as for `evolve`, as the others are.
            watch: likewise.
            tell: likewise.
            drains: likewise.
            calls: see `loop_of`.

        Raises:
            RuntimeError: it is the second time for this value.
        """
        self._begin()
        parts, settings, folder = self.parts, self.settings, self.folder
        assert parts is not None  # or it is over
        with ExitStack() as stack:
            hold = stack.enter_context
            trainer = hold(  # it starts while the model loads
                training(
                    settings, parts=parts, history=self.history, folder=folder, notify=bell.set
                )
            )
            restored, first = self._restore(parts.model)
            history, log = self.history, self.log  # that is a new history
            learner = learner_of(
                settings, parts=parts, history=history, log=log, folder=folder, trainer=trainer
            )
            timeline = hold(Timeline(folder / TIMELINE))
            update = hold(watch(history))
            told = hold(
                watched(
                    settings, run=folder.name, session=log.session, history=history, first=first
                )
            )
            decoder = hold(parts.decoder(timeline=timeline, notify=bell.set))
            if learner is not None:  # before anything is recorded
                learner.serve(decoder)
            recorder = Recorder(
                log=log,
                state=restored.state,
                learner=learner,
                tell=lambda events: (told(events), tell(events)),
                update=update,
            )
            parts.watch(timeline)
            parts.evaluators.announce_to(bell.set)
            self._begin_session(recorder)
            operators = parts.operators(settings)
            hold(left_alone())  # no collection walks what is there now
            yield loop_of(
                settings=settings,
                restored=restored,
                record=recorder.record,
                commit=recorder.commit,
                operators=operators,
                model=parts.model,
                decoder=decoder,
                syntax=parts.syntax,
                evaluator=told_cascade(settings, self.problem, history, parts.evaluators),
                stopped=lambda: stopped() or self.steering.is_stopped,
                timeline=timeline,
                bell=bell,
                steering=self.steering,
                filler=filler_of(settings, parts=parts, state=restored.state, operators=operators),
                drains=drains,
                calls=calls,
                learner=learner,
            )
        self.steering.end()

    def _begin(self) -> None:
        """Begin to evolve the run, or refuse to do so again."""
        if self._is_begun:
            raise RuntimeError("a run is evolved once; go on with Run.resume")
        self._is_begun = True

    def _restore(self, model: Model) -> tuple[Restored, list[Event]]:
        """Return the run as far as it is recorded, and the events of this session.

        What was read when the run was opened is not read again, and kept no longer.
        """
        with collections_put_off():
            recorded, self._recorded = self._recorded, []
            recorded += self.log.events(after=len(recorded))
            restored = restore(self.settings, self.problem, recorded, model)
        self.history = restored.state.history
        return restored, [each.event for each in recorded if each.session == self.log.session]

    def _begin_session(self, recorder: Recorder) -> None:
        """Count this session's seconds from now on; record it, if its run was there before."""
        if self.log.session == 0:
            self.log.start_clock()
            return
        recorder.record(begun_session(self.log.session, self.problem))
        self.log.commit()  # the recorder's would begin with training, before the loop can

    def events(self) -> Iterator[Event]:
        """Run the loop in a thread, and yield each event once it is on disk.

        The loop goes on meanwhile and waits for nobody. It ends with the budget, or in good order
        when the iteration is left; a run that was left goes on with `resume`. What was recorded
        before is in the `log`.

        Raises:
            RuntimeError: it is the second time for this value, or `evolve` was called.
        """
        if self.evolution is not None or self._is_begun:
            raise RuntimeError("a run's events are iterated over once; go on with Run.resume")
        if self.parts is not None:
            _ = self.parts.model  # vLLM is loaded by the thread that asks
        self.evolution = Evolution(lambda stopped, tell: self.evolve(stopped=stopped, tell=tell))
        return iter(self.evolution)

    @contextmanager
    def closed_after(self) -> Iterator[None]:
        """Close the run at the end.

        Raises:
            BaseException: what ended the loop that `events` runs, if nobody was told.
        """
        try:
            yield
        finally:
            self.close()
        if self.evolution is not None:
            self.evolution.raise_failure()

    def close(self) -> None:
        """End the loop that `events` runs, if it still does; idempotent."""
        if self.evolution is not None:
            self.evolution.close()
