"""The teacher: what the driver does so that the model learns.

It hands on what the islands have judged, tells the workers of each step, and knows which versions
the islands may still go on with, wherever they are: those stay.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from engine.cluster.learning.ray_trainer import shared_learner
from engine.cluster.learning.recorded import records
from engine.cluster.learning.shared_update import SharedUpdate
from engine.cluster.on_ray import RayWorker, WorkerLost
from engine.cluster.worker_report import WorkerReport
from engine.core import Direction
from engine.settings import RunSettings

_log = logging.getLogger("brood")


class Teacher:
    """See the module. One thread uses it."""

    def __init__(self, settings: RunSettings, folder: Path, *, direction: Direction) -> None:
        """Begin to start the trainer, from what the islands' logs have.

        Args:
            settings: of the whole run.
            folder: the run's, whose islands are founded.
            direction: of the problem's score.

        Raises:
            UserError: a log can't be read, or the last version's checkpoint is missing.
        """
        found = records(settings, folder, direction=direction)
        self._count = settings.islands.count
        self._standings = {number: each.standing for number, each in found.items()}  # but if over
        self._told: dict[RayWorker, int] = {}  # the last step that a worker was told of
        self._learner = shared_learner(
            settings,
            folder,
            recorded={number: each.updates for number, each in found.items()},
            progress=self._progress,
        )

    @property
    def version(self) -> int:
        """The latest version of the adapter, 0 for the model itself."""
        return self._learner.version

    def take(self, report: WorkerReport, *, islands: Collection[int]) -> None:
        """Take in what a worker has of its islands.

        Args:
            report: the worker's.
            islands: those that the report is about, and that are there.
        """
        self._learner.take(report.groups)
        self._standings |= {n: each for n, each in report.standings.items() if n in islands}

    def leave(self, number: int) -> None:
        """Note that an island goes from a worker that may have gone on with it unheard.

        It may have begun calls since its last report, with whatever version was there.
        """
        last = self._standings[number]
        versions = last.versions.union(self._learner.stored)
        self._standings[number] = replace(last, versions=versions)

    def end(self, number: int) -> None:
        """Note that an island is over, and needs no version."""
        self._standings.pop(number, None)

    def turn(self, workers: Sequence[RayWorker]) -> None:
        """Go on with training; tell the workers that are ready of the last step."""
        needed = frozenset[int]().union(*(each.versions for each in self._standings.values()))
        self._learner.turn(needed=needed)
        if self._learner.latest is not None:
            self._tell(workers, latest=self._learner.latest)

    def close(self) -> None:
        """End the trainer."""
        self._learner.close()

    def _tell(self, workers: Sequence[RayWorker], *, latest: SharedUpdate) -> None:
        for worker in workers:
            if self._told.get(worker) != latest.update.number:
                try:
                    # Not only told: an island that is added next may need the versions.
                    worker.call("learn", latest, self._learner.stored)
                except WorkerLost as error:
                    _log.debug("a worker that is to learn: %s", error)  # its report says so too
        self._told = dict.fromkeys(workers, latest.update.number)

    def _progress(self) -> float:
        """Return the share of the whole run's budget that is spent."""
        over = self._count - len(self._standings)
        return min(1.0, (over + sum(each.share for each in self._standings.values())) / self._count)
