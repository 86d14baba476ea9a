"""The driver: shares the islands out among the workers, and sees that all of them go on.

Workers die, machines are cut off. An island whose worker is lost goes on at another one from where
its log ends; a worker that was only cut off finds, when it writes next, that its island has gone on
without it. Nobody but the driver decides where islands are, and nothing but their logs says how far
they are: a driver that died is replaced by ``resume=``.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from engine import config
from engine.cluster.assignment import Load, better, taker
from engine.cluster.files import Files, files_of, put_files
from engine.cluster.fleet import Fleet
from engine.cluster.islands import island_settings, with_format
from engine.cluster.kv.node_caches import NodeCaches
from engine.cluster.kv.prefiller import Prefiller
from engine.cluster.kv.ray_node_cache import RayNodeCache
from engine.cluster.last_nodes import LastNodes
from engine.cluster.learning.teacher import Teacher
from engine.cluster.on_ray import RayWorker, WorkerLost
from engine.cluster.outposts.outposts import Outposts
from engine.cluster.outposts.ray_outpost import RayOutpost
from engine.cluster.refusals import Refusals
from engine.cluster.worker import Worker
from engine.cluster.worker_report import IslandReport, WorkerReport
from engine.core import Problem, UserError
from engine.durable import write_whole
from engine.settings import RunSettings

_PAUSE = 0.5  # seconds between two looks at the workers
_MEASURED = 10.0  # seconds after which a worker's rate with its islands is believed
_log = logging.getLogger("brood")


class Driver:
    """See the module. One thread uses it."""

    def __init__(self, settings: RunSettings, *, folder: Path, problem: Problem) -> None:
        """Start no worker yet.

        Args:
            settings: of the whole run.
            folder: the run's, with its settings, and with the islands' folders once it is founded.
            problem: the run's, as it lies here.
        """
        self._settings = settings
        self._folder = folder
        self._problem = problem
        self._text = (folder / "config.yaml").read_text()
        wanted = min(settings.cluster.workers, settings.islands.count)
        self._fleet = Fleet(
            self._new_worker,
            workers=wanted,
            prefillers=settings.cluster.prefillers,
            caches=self._caches(),
        )
        self._prefillers: dict[RayWorker, RayWorker | None] = {}  # which a worker uses
        self._outposts = Outposts(self._new_outpost, wanted=settings.cluster.outposts)
        every = range(settings.islands.count)
        self._shares = [island_settings(settings, each).budget.candidates for each in every]
        self._at: dict[int, RayWorker] = {}
        self._stays = Counter[int]()  # by island, how often it was given to a worker
        self._keeps_kv = settings.cache.kind != "none"
        self._nodes = LastNodes(folder)
        self._refusals = Refusals()
        self._not_before: dict[int, float] = {}
        self._rates: dict[RayWorker, float] = {}  # candidates a second
        self._next_move = 0.0
        self._teacher: Teacher | None = None
        self.islands: dict[int, IslandReport] = {}
        """How each stands, as far as it was heard of."""

    @property
    def workers(self) -> int:
        """How many are ready."""
        return len(self._fleet.ready)

    @property
    def version(self) -> int | None:
        """The latest version of the adapter, 0 for the model itself; None where nothing learns."""
        return None if self._teacher is None else self._teacher.version

    @property
    def has_reached_target(self) -> bool:
        """Whether an island has found what the run looks for."""
        target, better = self._settings.budget.target, self._problem.direction.better
        scores = [each.best_score for each in self.islands.values()]
        return target is not None and any(
            score is not None and not better(target, than=score) for score in scores
        )

    def found(self, *, stopped: Callable[[], bool]) -> None:
        """Have a worker make the islands' runs.

        Raises:
            UserError: the run can't begin.
        """
        while not self._fleet.ready:
            if stopped():
                raise KeyboardInterrupt
            self._fleet.turn()
            time.sleep(_PAUSE)
        try:
            files: Files = self._fleet.ready[0].call("found", waits=True)
        except WorkerLost as error:
            raise UserError(f"the first worker died: {error}; its output says why") from error
        if self._settings.store is not None:
            put_files(self._folder, files)

    def run(self, *, stopped: Callable[[], bool], show: Callable[[], object]) -> None:
        """Go on until all islands are over, or the user asks for an end.

        Args:
            stopped: whether the user asks for an end in good order.
            show: called after each look at the workers.

        Raises:
            UserError: workers can't be started, an island can go on at none, or the model can't go
                on to learn.
        """
        self._keep_format()
        if self._settings.learning.method != "none":
            self._teacher = Teacher(self._settings, self._folder, direction=self._problem.direction)
        is_stopping = False
        while True:
            for worker, report in self._fleet.turn().items():
                self._take(worker, report)
            if self._teacher is not None:
                self._teacher.turn(self._fleet.ready)
            self._outposts.turn(self._fleet.ready)
            self._pair()
            if is_stopping and not self._at:
                return
            if stopped() and not is_stopping:
                is_stopping = True
                for worker in self._fleet.ready:
                    worker.tell("stop")
            if not is_stopping:
                if self.are_over or self.has_reached_target:
                    return
                self._share_out()
                self._move()
            show()
            time.sleep(_PAUSE)

    def close(self) -> None:
        """End all workers; islands that are not over may go on later."""
        if self._teacher is not None:
            self._teacher.close()
        self._fleet.close()
        self._outposts.close()
        self._at.clear()

    def _keep_format(self) -> None:
        """Have who begins from now on, in later sessions too, compute in the founder's format."""
        settings = with_format(self._settings, self._folder)
        if settings != self._settings:
            with TemporaryDirectory() as scratch:
                config.save(settings, path := Path(scratch, "config.yaml"))
                self._settings, self._text = settings, path.read_text()
            write_whole(self._folder / "config.yaml", self._text)

    def _new_worker(self, is_prefiller: bool) -> RayWorker:
        cluster, name, text = self._settings.cluster, self._folder.name, self._text
        if is_prefiller:
            return RayWorker(cluster, Prefiller, label=f"{name} prefiller", settings=text)
        at_hand = self._settings.store is None
        folder = str(self._folder.resolve()) if at_hand else None
        return RayWorker(
            cluster,
            Worker,
            label=name,
            settings=text,
            name=name,
            folder=folder,
            fingerprint=self._problem.fingerprint,
        )

    def _caches(self) -> NodeCaches | None:
        """Return the machines' LMCache servers, where there are any and they are the run's."""
        cache, model = self._settings.cache, self._settings.model
        if cache.kind == "none" or cache.server is not None:
            return None
        return NodeCaches(
            cache,
            lambda node: RayNodeCache(self._settings.cluster, node=node, cache=cache, model=model),
        )

    def _new_outpost(self) -> RayOutpost:
        return RayOutpost.asked(
            self._settings.cluster,
            text=self._text,
            fingerprint=self._problem.fingerprint,
            name=self._folder.name,
        )

    @property
    def are_over(self) -> bool:
        """Whether all islands have spent their shares of the budget."""
        count = self._settings.islands.count
        return len(self.islands) == count and all(each.is_over for each in self.islands.values())

    def _take(self, worker: RayWorker, report: WorkerReport | str) -> None:
        """Take in how a worker stands, or why it is lost."""
        here = [number for number, at in self._at.items() if at is worker]
        if isinstance(report, str):
            _log.warning("a worker is lost (%s); its islands %s go on elsewhere", report, here)
            for number in here:
                self._leave(number)
            self._rates.pop(worker, None)
            return
        here = [number for number in here if report.stays.get(number) == self._stays[number]]
        if self._teacher is not None:
            self._teacher.take(report, islands=here)
        if report.seconds >= _MEASURED:
            self._rates[worker] = report.candidates / report.seconds
        for number in here:
            if (reason := report.lost.get(number)) is not None:
                _log.warning("island %d can't go on there: %s", number, reason)
                del self._at[number]
                known = [self.islands.get(number), report.islands.get(number)]
                candidates = max((each.candidates for each in known if each is not None), default=0)
                pause = self._refusals.add(number, reason, candidates=candidates)
                self._not_before[number] = time.monotonic() + pause
                continue
            island = self.islands[number] = report.islands[number]
            if island.is_over or island.has_stopped:
                del self._at[number]
            if island.is_over and self._teacher is not None:
                self._teacher.end(number)

    def _leave(self, number: int) -> None:
        """Take an island from a worker that may have gone on with it since its last report."""
        del self._at[number]
        if self._teacher is not None:
            self._teacher.leave(number)

    def _pair(self) -> None:
        """Let each worker use a prefiller of its machine, the one that fewest use."""
        ready, prefillers = self._fleet.ready, self._fleet.prefillers
        before, self._prefillers = self._prefillers, {}
        for worker in ready:
            node = self._fleet.node_of(worker)
            near = [each for each in prefillers if self._fleet.node_of(each) == node]
            used, uses = before.get(worker), [*self._prefillers.values()]
            if used not in near:
                used = min(near, key=uses.count, default=None)
                if used is not None or before.get(worker) is not None:
                    worker.tell("prefill_at", used and used.handle())
            self._prefillers[worker] = used

    def _share_out(self) -> None:
        """Give each island that is nowhere to a worker; see `taker`."""
        for number in range(self._settings.islands.count):
            known = self.islands.get(number)
            is_over = known is not None and known.is_over
            is_early = time.monotonic() < self._not_before.get(number, 0.0)
            if number in self._at or is_over or is_early or not self._fleet.ready:
                continue
            at = taker(self._loads(), left=self._left(number), warm=self._nodes.get(number))
            self._give(number, self._fleet.ready[at])

    def _move(self) -> None:
        """Move an island where all would end earlier, once the last move was measured."""
        if time.monotonic() < self._next_move or (move := better(self._loads())) is None:
            return
        number, here, there = move
        ready = self._fleet.ready
        ready[here].tell("remove", number)
        self._leave(number)
        self._give(number, ready[there])
        self._next_move = time.monotonic() + _MEASURED

    def _loads(self) -> Sequence[Load]:
        """Return what the workers that are ready have to do, in their order."""
        return [
            Load(
                left={n: self._left(n) for n, at in self._at.items() if at is worker},
                rate=self._rates.get(worker),
                node=self._fleet.node_of(worker) if self._keeps_kv else "",
            )
            for worker in self._fleet.ready
        ]

    def _left(self, number: int) -> float:
        """Return the candidates that an island still has; 1 where the budget sets no number."""
        share = self._shares[number]
        if share is None:
            return 1.0
        known = self.islands.get(number)
        return max(1.0, share - (known.candidates if known is not None else 0))

    def _give(self, number: int, worker: RayWorker) -> None:
        self._at[number] = worker
        if self._keeps_kv:
            self._nodes.put(number, self._fleet.node_of(worker))
        self._stays[number] += 1
        files = {} if self._settings.store is None else files_of(self._folder)
        worker.tell("add", number, self._stays[number], files)
