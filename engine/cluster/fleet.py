"""The fleet: as many workers as there are to be, from their start to their death.

Nothing of it waits: a worker is asked for, is placed somewhere, loads its model and is ready, and
meanwhile the islands of the others go on.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from engine.cluster.kv.node_caches import NodeCaches
from engine.cluster.on_ray import RayWorker, WorkerLost, leaving, reports
from engine.cluster.worker_report import WorkerReport
from engine.core import UserError

_MOST_DEATHS = 5  # in a row for each worker there is to be, while none has evaluated anything
_PATIENCE = 10.0  # seconds for which the first ones wait for each other, to share cores out fairly
_SAID_EVERY = 60.0  # seconds
_log = logging.getLogger("brood")
T = TypeVar("T")


@dataclass(kw_only=True)
class _Member:
    worker: RayWorker
    is_prefiller: bool
    asked: float
    node: str = ""
    free: Sequence[int] = ()  # cores that it may use
    cores: Sequence[int] = ()  # those that it is to keep to
    is_started: bool = False
    is_ready: bool = False


class Fleet:
    """See the module. One thread uses it."""

    def __init__(
        self,
        make: Callable[[bool], RayWorker],
        *,
        workers: int,
        prefillers: int = 0,
        caches: NodeCaches | None = None,
    ) -> None:
        """Have no worker yet.

        Args:
            make: asks for a worker, or for a prefiller if it is called with True.
            workers: how many there are to be.
            prefillers: how many there are to be.
            caches: the machines' LMCache servers, which all of them share; None for none.
        """
        self._make = make
        self._caches = caches
        self._wanted = {False: workers, True: prefillers}
        self._members: list[_Member] = []
        self._deaths = 0
        self._said = float("-inf")

    def node_of(self, worker: RayWorker) -> str:
        """Return the machine of a worker that is ready."""
        (node,) = (each.node for each in self._members if each.worker is worker)
        return node

    @property
    def ready(self) -> list[RayWorker]:
        """The workers that may have islands."""
        return [each.worker for each in self._members if each.is_ready and not each.is_prefiller]

    @property
    def prefillers(self) -> list[RayWorker]:
        """Those that may compute prompts."""
        return [each.worker for each in self._members if each.is_ready and each.is_prefiller]

    def turn(self) -> Mapping[RayWorker, WorkerReport | str]:
        """Go on with what is started, and replace what is lost.

        Returns:
            How the workers that are ready stand, or were ready and why they are lost.

        Raises:
            UserError: workers can't be started.
        """
        self._ask()
        self._place()
        self._start()
        self._load()
        found: dict[RayWorker, WorkerReport | str] = dict(self._let_go())
        prefillers, workers = self.prefillers, self.ready
        for worker, report in reports([*workers, *prefillers]).items():
            error = str(report) if isinstance(report, WorkerLost) else report.error
            if error:
                self._bury(worker)
                found[worker] = error
                self._count_death(error)
            else:
                assert not isinstance(report, WorkerLost)
                found[worker] = report
                if report.candidates:
                    self._deaths = 0
        for prefiller in prefillers:
            if isinstance(why := found.pop(prefiller), str):
                _log.warning("a prefiller is lost (%s)", why)
        return found

    def close(self) -> None:
        """End all workers."""
        for each in [*self._members]:
            self._end(each)
        if self._caches is not None:
            self._caches.close()

    def _ask(self) -> None:
        """Ask for those that are missing."""
        for is_prefiller, wanted in self._wanted.items():
            have = sum(each.is_prefiller == is_prefiller for each in self._members)
            for _ in range(wanted - have):
                worker = self._make(is_prefiller)
                self._members.append(
                    _Member(worker=worker, is_prefiller=is_prefiller, asked=time.monotonic())
                )

    def _place(self) -> None:
        """Share out the cores of a machine: none gets any that another one has."""
        for member in [each for each in self._members if not each.node]:
            if (found := self._asked(member, member.worker.place)) is not None:
                member.node, member.free = found
        waiting = [time.monotonic() - each.asked for each in self._members if not each.node]
        if any(seconds > _SAID_EVERY for seconds in waiting):
            self._say_waiting(len(waiting))
        if any(seconds < _PATIENCE for seconds in waiting):
            return
        new = [each for each in self._members if each.node and not each.cores]
        for member in new:
            beside = [each for each in new if each.node == member.node]
            taken = {
                core
                for each in self._members
                if each.node == member.node and each not in new
                for core in each.cores
            }
            free = [core for core in member.free if core not in taken] or member.free
            among = min(len(beside), len(free))
            member.cores = free[beside.index(member) % among :: among]

    def _start(self) -> None:
        """Start those that have cores, once the LMCache server of their machine is there."""
        for member in [each for each in self._members if each.cores and not each.is_started]:
            cache = None if self._caches is None else self._caches.settings(member.node)
            if cache is not None or self._caches is None:
                member.worker.start(member.cores, cache)
                member.is_started = True

    def _load(self) -> None:
        """See whose model is there."""
        for member in [each for each in self._members if each.is_started and not each.is_ready]:
            if self._asked(member, member.worker.is_ready):
                member.is_ready = True

    def _let_go(self) -> Iterator[tuple[RayWorker, str]]:
        """End what is on machines that are drained; yield the workers that may have islands."""
        gone = leaving()
        for member in [each for each in self._members if each.node in gone]:
            self._end(member)
            if member.is_ready and not member.is_prefiller:
                yield member.worker, "its machine is drained"
        if self._caches is not None:
            self._caches.leave(gone)

    def _end(self, member: _Member) -> None:
        """End a worker in good order, if it still can be."""
        if member.is_ready:
            try:
                member.worker.call("close")
            except (WorkerLost, UserError) as error:
                _log.debug("a worker that is closed: %s", error)
        self._bury(member.worker)

    def _asked(self, member: _Member, question: Callable[[], T]) -> T | None:
        """Return a worker's answer; forget it, and return None, if it died before it was ready."""
        try:
            return question()
        except WorkerLost as error:
            _log.warning("a worker died while it started: %s", error)
            self._bury(member.worker)
            self._count_death(str(error))
            return None

    def _count_death(self, error: str) -> None:
        """Count a worker that died.

        Raises:
            UserError: so many did, and nothing was evaluated meanwhile, that more would not help.
        """
        self._deaths += 1
        if self._deaths >= _MOST_DEATHS * self._wanted[False]:
            raise UserError(
                f"{self._deaths} workers died one after the other, and none evaluated anything: "
                f"{error}; their output says why"
            )

    def _say_waiting(self, count: int) -> None:
        if time.monotonic() - self._said > _SAID_EVERY:
            self._said = time.monotonic()
            _log.warning("%d workers wait for a machine with room for them", count)

    def _bury(self, worker: RayWorker) -> None:
        worker.kill()
        self._members = [each for each in self._members if each.worker is not worker]
