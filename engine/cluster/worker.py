"""A worker: a process with a model, its evaluators, and the islands that are there.

A thread of its own steps the islands; the methods may be called from any other, and but for `ready`
and `found` they return at once. A worker knows nothing of the others.
"""

import logging
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue

from engine import config
from engine.cluster.files import Files, files_of, put_files
from engine.cluster.host import Host, open_host
from engine.cluster.islands import found
from engine.cluster.kv.prefilled import Prefilling
from engine.cluster.learning.island_learner import Standing, Stored, WorkerLearning
from engine.cluster.learning.shared_update import SharedUpdate
from engine.cluster.outposts.spread import OutpostHandle
from engine.cluster.same_problem import problem_here
from engine.core import UserError
from engine.learning import Group
from engine.scratch import make_scratch, remove_stale
from engine.session import log_to_terminal
from engine.settings import CacheSettings
from engine.store import RunHistory
from engine.timeline import TIMELINE

_SCRATCH = "brood-worker-"  # begins the name of a worker's folder for temporary files
_log = logging.getLogger("brood")


@dataclass(frozen=True, kw_only=True, slots=True)
class IslandReport:
    """How an island stands.

    Attributes:
        candidates: evaluated so far.
        best_score: None before there is one.
        is_over: whether it has spent its share of the budget.
        has_stopped: whether it has come to its end here, because its worker was asked to stop.
    """

    candidates: int
    best_score: float | None
    is_over: bool
    has_stopped: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerReport:
    """How a worker stands.

    Attributes:
        islands: those that are here, or were when they ended.
        lost: islands that could not go on here, each with the reason.
        stays: which stay of an island the two are about: the number that `Worker.add` was last
            called with and has done. An island that comes back is not what was said of it before.
        candidates: evaluated since it has had these islands.
        seconds: since then.
        error: what ended it; empty while it lives.
        groups: what the islands have judged since the last report, where the model learns.
        standings: of the islands, for the trainer.
    """

    islands: Mapping[int, IslandReport]
    lost: Mapping[int, str]
    candidates: int
    seconds: float
    error: str
    stays: Mapping[int, int] = field(default_factory=dict)
    groups: Sequence[Group] = ()
    standings: Mapping[int, Standing] = field(default_factory=dict)


class Worker:
    """See the module."""

    def __init__(self, settings: str, *, name: str, folder: str | None, fingerprint: str) -> None:
        """Load nothing yet.

        Args:
            settings: of the whole run, as YAML.
            name: of the run.
            folder: the run's, where it can be reached from here; None to have one of its own.
            fingerprint: of the run's problem, which has to be the same here.
        """
        log_to_terminal()
        temporary = Path(tempfile.gettempdir())
        remove_stale(temporary, _SCRATCH)  # of workers that were killed
        self._scratch, self._lock = make_scratch(temporary, f"{_SCRATCH}{secrets.token_hex(8)}")
        self._folder = Path(folder) if folder is not None else self._scratch / name
        path = self._scratch / "settings.yaml"
        path.write_text(settings)
        self._settings = config.load(path)
        self._fingerprint = fingerprint
        self._learning = WorkerLearning(self._scratch / "adapters")
        self._commands: SimpleQueue[Callable[[Host], None] | None] = SimpleQueue()
        self._ready: Future[None] = Future()
        self._histories: dict[int, RunHistory] = {}
        self._changed, self._before = 0.0, 0  # since when it has these islands, and candidates then
        self._over: frozenset[int] = frozenset()
        self._stopped: frozenset[int] = frozenset()
        self._lost: dict[int, str] = {}
        self._stays: dict[int, int] = {}
        self._error = ""
        self._bell: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=self._work, name="islands", daemon=True)

    def start(self, cores: Collection[int], cache: CacheSettings | None) -> None:
        """Begin to load the model.

        Args:
            cores: of the machine, to keep to.
            cache: which LMCache server to use; None for what the run's settings say.
        """
        if cache is not None:
            self._settings = replace(self._settings, cache=cache)
        os.sched_setaffinity(0, cores)
        self._thread.start()

    def ready(self) -> None:
        """Wait until the model is there.

        Raises:
            UserError: it can't be, or the problem is not the driver's.
        """
        self._ready.result()

    def found(self) -> Files:
        """Make the runs of the islands; return their files.

        Raises:
            UserError: the run can't begin.
        """
        done: Future[Files] = Future()

        def begin(host: Host) -> None:
            try:
                found(self._settings, host.problem, parts=host.parts, folder=self._folder)
                done.set_result(files_of(self._folder))
            except BaseException as error:
                done.set_exception(error)

        self._command(begin)
        return done.result()

    def add(self, number: int, stay: int, files: Files) -> None:
        """Let an island go on here.

        Args:
            number: its own.
            stay: names this stay of it; see `WorkerReport.stays`.
            files: of the islands' runs; none where the run's folder can be reached from here.
        """

        def begin(host: Host) -> None:
            put_files(self._folder, files)
            self._stopped -= {number}
            self._lost.pop(number, None)
            try:
                self._histories[number] = host.add(number)
            except UserError as error:
                self._lost[number] = str(error)
            else:
                self._over = frozenset(host.over)
                self._measure_anew()
            self._stays[number] = stay  # last: what is reported under it is there

        self._command(begin)

    def use(self, outpost: OutpostHandle) -> None:
        """Have programs evaluated elsewhere too."""
        self._command(lambda host: host.evaluators.add(outpost))

    def prefill_at(self, prefiller: Prefilling | None) -> None:
        """Have prompts computed elsewhere; None for here."""
        self._command(lambda host: host.prefilled.use(prefiller))

    def learn(self, latest: SharedUpdate, stored: Mapping[int, Stored]) -> None:
        """Have the islands take over what the trainer made; see `WorkerLearning.take`."""
        self._command(lambda host: self._learning.take(latest, stored))

    def remove(self, number: int) -> None:
        """Let an island go, which goes on elsewhere."""

        def end(host: Host) -> None:
            if number in host.islands:
                host.remove(number)
            self._histories.pop(number, None)
            self._measure_anew()

        self._command(end)

    def stop(self) -> None:
        """Have all islands end in good order."""
        self._command(lambda host: host.ask_to_stop())

    def report(self) -> WorkerReport:
        """Return how it stands."""
        stays = dict(self._stays)  # first: what follows is at least as new
        every = dict(self._histories)
        return WorkerReport(
            islands={
                number: IslandReport(
                    candidates=history.evaluated,
                    best_score=history.best_score,
                    is_over=number in self._over,
                    has_stopped=number in self._stopped,
                )
                for number, history in every.items()
            },
            lost=dict(self._lost),
            candidates=self._evaluated() - self._before,
            seconds=time.monotonic() - self._changed,
            error=self._error,
            stays=stays,
            groups=[self._learning.groups.get() for _ in range(self._learning.groups.qsize())],
            standings=dict(self._learning.standings),
        )

    def close(self) -> None:
        """Let all islands go, and end the thread."""
        self._commands.put(None)
        self._bell()
        self._thread.join()
        shutil.rmtree(self._scratch, ignore_errors=True)
        os.close(self._lock)

    def _command(self, command: Callable[[Host], None]) -> None:
        self._commands.put(command)
        self._bell()

    def _work(self) -> None:
        try:
            problem = problem_here(self._settings, fingerprint=self._fingerprint)
            self._folder.mkdir(parents=True, exist_ok=True)
            timeline = self._scratch / TIMELINE
            with open_host(
                self._settings,
                problem,
                folder=self._folder,
                timeline=timeline,
                learning=self._learning,
            ) as host:
                self._bell = host.ring
                self._ready.set_result(None)
                while self._do_commands(host):
                    self._turn(host)
        except BaseException as error:
            self._error = str(error) or type(error).__name__
            if self._ready.done() or not isinstance(error, UserError):
                _log.exception("a worker ends")  # the driver has a line of it
            if not self._ready.done():
                self._ready.set_exception(error)

    def _turn(self, host: Host) -> None:
        here = set(host.islands)
        self._lost |= host.turn()
        self._over = frozenset(host.over)
        self._stopped |= here - set(host.islands) - set(self._lost)
        if here != set(host.islands):
            self._measure_anew()
        host.wait()

    def _measure_anew(self) -> None:
        """Forget the rate: it was that of other islands."""
        self._changed, self._before = time.monotonic(), self._evaluated()

    def _evaluated(self) -> int:
        return sum(history.evaluated for history in [*self._histories.values()])

    def _do_commands(self, host: Host) -> bool:
        """Do what was asked for; return whether to go on."""
        while not self._commands.empty():
            command = self._commands.get()
            if command is None:
                return False
            command(host)
        return True
