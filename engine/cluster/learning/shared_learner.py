"""Learning on a cluster, as the driver has it: the islands' groups go to one trainer.

The driver has the groups of all islands and the checkpoints, which lie in the run's folder; the
trainer and the workers have copies. A step is on record as soon as one island's log has it, which
is before a call begins with its version. So a driver that goes on takes the last step that any
island has recorded, and makes those again that none has.

Does not cover what the islands do with a version (``island_learner.py``), or where the trainer is
(``remote_trainer.py``).
"""

import logging
import shutil
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from engine.cluster.files import Files, all_files
from engine.cluster.learning.island_learner import Stored
from engine.cluster.learning.shared_update import SharedUpdate, shared_updates_of
from engine.core import Update
from engine.learning import (
    Group,
    SteadyTrainer,
    Steps,
    Versions,
    checkpoints,
    most_waiting,
    needed_checkpoint,
)
from engine.settings import LearningSettings

_TRAINERS = "trainer.pt"  # of a checkpoint, what those who sample don't need
_log = logging.getLogger("brood")


class SharedLearner:
    """See the module. One thread uses it."""

    def __init__(
        self,
        settings: LearningSettings,
        *,
        folder: Path,
        recorded: Mapping[int, Sequence[Update]],
        start: Callable[[Path | None], SteadyTrainer],
        store: Callable[[Files], Stored],
        progress: Callable[[], float],
    ) -> None:
        """Begin to start the trainer, at the version of the last step.

        Args:
            settings: the run's.
            folder: the run's.
            recorded: the steps that the islands' logs have, by island.
            start: starts the trainer, given the checkpoint to go on from.
            store: puts files where workers can fetch them.
            progress: returns the share of the budget that is spent, from 0 to 1.

        Raises:
            UserError: the last version's checkpoint is missing.
        """
        self._folder = folder
        self._store = store
        self._stored: dict[int, Stored] = {}
        self._waiting = deque[Group]()
        self._most = most_waiting(settings)
        self._stale = 0
        self._versions = Versions(max_lag=settings.max_lag)
        # Calls whose groups have come: an island that moves hands them in again.
        self._known = set[tuple[int, int]]()
        self.latest: SharedUpdate | None = None
        """The last step, for the islands; None before the first."""
        for self.latest in shared_updates_of(recorded):
            self._versions.fold(self.latest.update)
            self._known.update(zip(self.latest.logs, self.latest.update.groups, strict=True))
        latest = self._versions.latest
        checkpoint = needed_checkpoint(folder, latest) if latest else None
        self._forget_unrecorded()
        self._steps = Steps(
            settings=settings,
            folder=folder,
            trainer=start(checkpoint),
            versions=self._versions,
            progress=progress,
        )
        self._keep()

    @property
    def version(self) -> int:
        """The version in force."""
        return self._versions.latest

    @property
    def stored(self) -> Mapping[int, Stored]:
        """The versions that islands may need, for those who sample."""
        return dict(self._stored)

    def take(self, groups: Iterable[Group]) -> None:
        """Take what islands have judged; what has come before is left out."""
        for group in groups:
            name = (group.log, group.iteration)
            if name in self._known:
                continue
            self._known.add(name)
            if self._versions.is_stale(group.adapter):
                self._stale += 1
            else:
                self._waiting.append(group)
        while len(self._waiting) > self._most:
            self._waiting.popleft()
            self._stale += 1

    def turn(self, *, needed: Collection[int]) -> None:
        """Take the step that is over, and begin the next one if it is time.

        Args:
            needed: versions that children of the islands are still to be decoded with.
        """
        done = self._steps.trainer.completed()
        if done is not None:
            update = self._steps.update(done, stale=self._stale)
            self.latest = SharedUpdate(
                update=update, logs=tuple(group.log for group in done.job.groups)
            )
            self._versions.fold(update)
            learned = {(group.log, group.iteration) for group in done.job.groups}
            left = [each for each in self._waiting if (each.log, each.iteration) not in learned]
            fresh = [group for group in left if not self._versions.is_stale(group.adapter)]
            self._waiting, self._stale = deque(fresh), len(left) - len(fresh)
            self._steps.remove_checkpoints(needed=needed)
            self._keep()
        if self._steps.may_begin:
            self._steps.begin(list(self._waiting))

    def close(self) -> None:
        """End the trainer, in the middle of a step if need be."""
        self._steps.trainer.close()

    def _keep(self) -> None:
        """Have the versions stored whose checkpoints are kept."""
        folders = checkpoints(self._folder)
        for version in self._stored.keys() - folders.keys():
            del self._stored[version]
        for version in folders.keys() - self._stored.keys():
            self._stored[version] = self._store(all_files(folders[version], but=_TRAINERS))

    def _forget_unrecorded(self) -> None:
        """Remove the checkpoints of steps that no island has recorded before the driver died."""
        last = self._versions.number
        lost = {n: each for n, each in checkpoints(self._folder).items() if n > last}
        for folder in lost.values():
            shutil.rmtree(folder, ignore_errors=True)
        if lost:
            _log.warning(
                "no island had taken over step %s of training; what it learned is lost",
                ", ".join(map(str, sorted(lost))),
            )
