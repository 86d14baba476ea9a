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
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

from engine import config
from engine.cluster.files import Files, files_of, put_files
from engine.cluster.host import Host, open_host
from engine.cluster.islands import found
from engine.cluster.kv.prefilled import Prefilling
from engine.cluster.learning.island_learner import Stored, WorkerLearning
from engine.cluster.learning.shared_update import SharedUpdate
from engine.cluster.outposts.spread import OutpostHandle
from engine.cluster.same_problem import check_folder_here, problem_here
from engine.cluster.worker_report import IslandReport, WorkerReport
from engine.core import UserError
from engine.scratch import make_scratch, remove_stale
from engine.session import log_to_terminal
from engine.settings import CacheSettings
from engine.store import RunHistory
from engine.timeline import TIMELINE

_SCRATCH = "brood-worker-"  # begins the name of a worker's folder for temporary files
_log = logging.getLogger("brood")


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
        self._has_own_folder = folder is None
        self._folder = self._scratch / name if folder is None else Path(folder)
        path = self._scratch / "settings.yaml"
        path.write_text(settings)
        self._settings = config.load(path)
        self._fingerprint = fingerprint
        self._learning = WorkerLearning(self._scratch / "adapters")
        self._commands: SimpleQueue[Callable[[Host], None] | None] = SimpleQueue()
        self._ready: Future[None] = Future()
        self._histories: dict[int, RunHistory] = {}  # of the islands that are here
        self._left: dict[int, IslandReport] = {}  # how others stood that ended here
        # Candidates since it has had these islands, and since when: in one, for `report` to read.
        self._measured = 0, time.monotonic()
        self._before = 0  # candidates that they had then
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
            stay: the number of this stay of it; see `engine.cluster.worker_report`.
            files: of the islands' runs; none where the run's folder can be reached from here.
        """

        def begin(host: Host) -> None:
            put_files(self._folder, files)
            self._left.pop(number, None)
            self._lost.pop(number, None)
            self._learning.standings.pop(number, None)
            try:
                self._histories[number] = host.add(number)
            except UserError as error:
                self._lost[number] = str(error)
            else:
                self._look(host)
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
                del self._histories[number]
                self._measure_anew()

        self._command(end)

    def stop(self) -> None:
        """Have all islands end in good order."""
        self._command(lambda host: host.ask_to_stop())

    def report(self) -> WorkerReport:
        """Return how it stands."""
        stays = dict(self._stays)  # first: what follows is at least as new
        here = {number: _report_of(each) for number, each in dict(self._histories).items()}
        candidates, since = self._measured
        return WorkerReport(
            islands=here | dict(self._left),  # read behind the histories: it is in one of the two
            lost=dict(self._lost),
            candidates=candidates,
            seconds=time.monotonic() - since,
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
            if self._has_own_folder:
                self._folder.mkdir()
            else:
                check_folder_here(self._folder)
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
        self._lost |= host.turn()
        if self._look(host):
            self._measure_anew()
        _, since = self._measured
        self._measured = self._evaluated() - self._before, since
        host.wait()

    def _look(self, host: Host) -> bool:
        """Keep of islands that are here no more how they stood; return whether there are any."""
        gone = self._histories.keys() - host.islands.keys()
        for number in gone:
            is_over = number in host.over
            self._left[number] = replace(
                _report_of(self._histories[number]),
                is_over=is_over,
                has_stopped=not is_over and number not in self._lost,
            )
            del self._histories[number]  # last: see `report`
        return bool(gone)

    def _measure_anew(self) -> None:
        """Forget the rate: it was that of other islands."""
        self._before = self._evaluated()
        self._measured = 0, time.monotonic()

    def _evaluated(self) -> int:
        return sum(history.evaluated for history in self._histories.values())

    def _do_commands(self, host: Host) -> bool:
        """Do what was asked for; return whether to go on."""
        while not self._commands.empty():
            command = self._commands.get()
            if command is None:
                return False
            command(host)
        return True


def _report_of(history: RunHistory) -> IslandReport:
    """Return how an island stands that is here."""
    return IslandReport(candidates=history.evaluated, best_score=history.best_score)
