"""The host: the loops of several islands in one thread, on one model and its evaluators."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from engine import config
from engine.api.run import Run
from engine.cluster.exchange import OVER, Exchange, MigratingCalls
from engine.cluster.islands import neighbours_of
from engine.cluster.known import Known
from engine.cluster.kv.prefilled import PrefilledDecoder
from engine.cluster.learning.island_learner import IslandLearner, WorkerLearning
from engine.cluster.outposts.spread import SpreadEvaluators
from engine.cluster.places import island_folder
from engine.cluster.sharing import SharedDecoder, SharedEvaluators
from engine.collector import leave_alone
from engine.core import Event, Problem, ProcessUnfitError, Sent, UserError
from engine.inference import Model
from engine.learning import MakeGroup
from engine.loop import Loop
from engine.parts import Parts, open_parts
from engine.pipeline import Calls, RunState
from engine.settings import RunSettings
from engine.store import EventLog, RunHistory, read_event
from engine.store.verdicts import VerdictTable
from engine.timeline import Timeline

_PATIENCE = 0.2  # seconds after which the loops look at the clock though nothing was reported
_log = logging.getLogger("brood")


@dataclass(kw_only=True)
class Island:
    """An island that is here.

    Attributes:
        number: its own.
        run: its run.
        loop: goes on from where its log ends.
        resources: closed when it goes.
    """

    number: int
    run: Run
    loop: Loop
    resources: ExitStack


class Host:
    """Islands that are here. All methods but `ring` belong to one thread."""

    def __init__(
        self,
        settings: RunSettings,
        problem: Problem,
        *,
        folder: Path,
        parts: Parts,
        prefilled: PrefilledDecoder,
        bell: threading.Event,
        learning: WorkerLearning | None = None,
    ) -> None:
        """Have no island.

        Args:
            settings: the whole run's.
            problem: the run's.
            folder: holds the islands' folders.
            parts: that all islands share.
            prefilled: decodes for all islands.
            bell: rings when the evaluators or the decoder have something.
            learning: what crosses to the trainer of the run and back; None where nothing learns.
        """
        self.problem = problem
        self.evaluators = SpreadEvaluators(parts.evaluators, workers=len(parts.cores))
        self.evaluators.announce_to(bell.set)
        # Nobody else may take the verdicts of the evaluators that are here.
        self.parts = replace(parts, evaluators=self.evaluators, load=lambda: parts.model)
        self._settings = settings
        self._folder = folder
        self.prefilled = prefilled
        self._decoder = SharedDecoder(prefilled)
        self._table = None
        if settings.store is not None:
            self._table = VerdictTable(settings.store, name=folder.name)
        self._evaluators = SharedEvaluators(
            self.evaluators, known=Known(self._table), notify=bell.set
        )
        idle = parts.idle_evaluators
        self._idle = None if idle is None else SharedEvaluators(idle.pool)
        self._bell = bell
        self._learning = learning
        self._is_asked = threading.Event()
        self._has_let_go = False  # of an island, since collections were told what to leave alone
        self.islands: dict[int, Island] = {}
        self.over: set[int] = set()
        """Islands whose budget was spent here, or before they came."""
        self._standing: dict[int, Island] = {}  # since the last wait ended
        self._waited = time.monotonic()  # when that was

    def ring(self) -> None:
        """Wake who waits; from any thread."""
        self._bell.set()

    def ask_to_stop(self) -> None:
        """Have all islands end in good order."""
        self._is_asked.set()

    def add(self, number: int) -> RunHistory:
        """Let an island go on here; return its history, which grows.

        Raises:
            UserError: its log can't be opened, for instance because it is somewhere else.
        """
        folder = island_folder(self._folder, number)
        with ExitStack() as stack:
            log = stack.enter_context(EventLog(folder))
            run = Run(
                settings=self._seen_by(config.load_run(folder)),
                problem=self.problem,
                log=log,
                folder=folder,
                parts=stack.enter_context(self._parts_of(number)),
            )
            if run.is_over:
                self._end(number, run)
                return run.history
            loop = stack.enter_context(
                run.loop(
                    bell=self._bell, stopped=self._is_asked.is_set, calls=self._calls_of(number)
                )
            )
            loop.begin()
            loop.commit()  # the step that calls begin with, before one is asked for
            island = Island(number=number, run=run, loop=loop, resources=stack.pop_all())
        self.islands[number] = island
        return run.history

    def turn(self) -> Mapping[int, str]:
        """Do what can be done now on all islands; let go of those that are over.

        Returns:
            The islands that can't go on here, each with the reason.

        Raises:
            ProcessUnfitError: none could.
        """
        if self._has_let_go and self.islands:
            # Only now that nothing refers to it any more, or what it had would be left alone too.
            leave_alone()
            self._has_let_go = False
        lost = {}
        for number, island in [*self.islands.items()]:
            try:
                if not island.loop.turn():
                    self.remove(number, is_over=not self._is_stopped(island))
            except ProcessUnfitError:
                raise
            except UserError as error:
                lost[number] = str(error)
                # Its log goes on where it ended on disk, whatever this process made of it since.
                if number in self.islands:
                    self._close(self.islands.pop(number))
        return lost

    def remove(self, number: int, *, is_over: bool = False) -> None:
        """Let an island go: what is under way is forgotten, and generated again elsewhere.

        Args:
            number: its own.
            is_over: whether its budget is known to be spent. Its log need not say so: time may be
                up without anything having happened since.
        """
        island = self.islands.pop(number)
        try:
            if is_over or island.run.is_over:
                self._end(number, island.run)
        finally:
            self._close(island)

    def _close(self, island: Island) -> None:
        island.resources.close()
        self._has_let_go = True

    def _is_stopped(self, island: Island) -> bool:
        """Whether somebody asked for an end, of all islands or of this one."""
        return self._is_asked.is_set() or island.run.steering.is_stopped

    def wait(self) -> None:
        """Wait until there may be something to do; the clocks of paused islands stand."""
        self._bell.wait(_PATIENCE)
        self._bell.clear()
        before, self._waited = self._waited, time.monotonic()
        for number, island in self._standing.items():
            if self.islands.get(number) is island and island.loop.stands:
                island.loop.leave_out(self._waited - before)
        self._standing = {n: each for n, each in self.islands.items() if each.loop.stands}

    def run(self) -> None:
        """Go on until no island is left."""
        while self.islands:
            self.turn()
            self.wait()

    def close(self) -> None:
        """Let all islands go."""
        for number in [*self.islands]:
            self.remove(number)
        self.evaluators.close()
        if self._table is not None:
            self._table.close()

    def _end(self, number: int, run: Run) -> None:
        """Say in an island's log, once, that it sends no more."""
        if OVER not in run.history.sent:
            run.history.fold(run.log.append(Sent(epoch=OVER, candidates=())))
            run.log.commit()
        self.over.add(number)

    def _seen_by(self, settings: RunSettings) -> RunSettings:
        """Return an island's settings with the evaluators that there are, wherever."""
        evaluation = replace(settings.evaluation, workers=self.evaluators.workers)
        return replace(settings, evaluation=evaluation)

    @contextmanager
    def _parts_of(self, number: int) -> Iterator[Parts]:
        parts, idle = self.parts, self.parts.idle_evaluators
        with ExitStack() as stack:
            if idle is not None and self._idle is not None:
                idle = replace(idle, pool=stack.enter_context(self._idle.client()))
            yield replace(
                parts,
                evaluators=stack.enter_context(self._evaluators.client()),
                idle_evaluators=idle,
                load=lambda: parts.model,
                decoding=self._decoder.client,
                learning=partial(self._learner_of, number),
            )

    def _learner_of(
        self,
        number: int,
        history: RunHistory,
        make_group: MakeGroup,
        share: Callable[[], float],
    ) -> IslandLearner:
        assert self._learning is not None  # or nothing learns
        return IslandLearner(
            number=number,
            history=history,
            make_group=make_group,
            share=share,
            worker=self._learning,
            max_lag=self._settings.learning.max_lag,
        )

    def _calls_of(self, number: int) -> Callable[..., Calls]:
        islands = self._settings.islands

        def make(*, state: RunState, record: Callable[[Event], None], **rest: Any) -> Calls:
            exchange = Exchange(
                state=state,
                record=record,
                neighbours=neighbours_of(self._settings, number),
                every=islands.migrate_every,
                most=islands.migrants,
                read=lambda of, kind, subject: read_event(
                    island_folder(self._folder, of), kind, subject
                ),
            )
            return MigratingCalls(state=state, record=record, exchange=exchange, **rest)

        return make


@contextmanager
def open_host(
    settings: RunSettings,
    problem: Problem,
    *,
    folder: Path,
    timeline: Path,
    load: Callable[[], Model] | None = None,
    learning: WorkerLearning | None = None,
) -> Iterator[Host]:
    """Start what islands share, and hold it.

    Args:
        settings: the whole run's.
        problem: the run's.
        folder: holds the islands' folders.
        timeline: file for who was busy when.
        load: returns the model, which stays open; None to load the settings' and close it.
        learning: see `Host`.

    Raises:
        UserError: `open_parts` does.
    """
    bell = threading.Event()
    with (
        open_parts(settings, problem, load=load) as parts,
        Timeline(timeline) as recorded,
        parts.decoder(timeline=recorded, notify=bell.set) as decoder,
    ):
        parts.watch(recorded)
        host = Host(
            settings,
            problem,
            folder=folder,
            parts=parts,
            prefilled=PrefilledDecoder(decoder, notify=bell.set),
            bell=bell,
            learning=learning,
        )
        try:
            yield host
        finally:
            host.close()
