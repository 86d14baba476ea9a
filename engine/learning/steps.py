"""Steps of training, one after the other: groups go to a trainer, and updates come of it.

Does not cover which calls are there to learn from (``judged.py``), or who samples from the versions
that the steps make.
"""

import math
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.core import Update, UserError
from engine.learning.group import Group
from engine.learning.job import Done, Job
from engine.learning.steady import SteadyTrainer
from engine.learning.versions import Versions
from engine.settings import LearningSettings

_ADAPTERS = "adapters"  # name of the folder with the checkpoints in a run's folder
_KEPT = 6  # checkpoints, besides those still decoded with; a collapse goes back by four
_MOST = 256  # groups that wait; the latest make up a step, so those before are hardly ever needed


@dataclass(kw_only=True)
class Steps:
    """The steps of one run.

    Attributes:
        settings: the run's.
        folder: the run's.
        trainer: does the steps.
        versions: that came of the steps so far.
        progress: returns the share of the budget that is spent, from 0 to 1.
    """

    settings: LearningSettings
    folder: Path
    trainer: SteadyTrainer
    versions: Versions
    progress: Callable[[], float]

    @property
    def may_begin(self) -> bool:
        """Whether the trainer would make a step."""
        return not self.trainer.is_busy and not self.trainer.is_lost

    def begin(self, groups: Sequence[Group]) -> None:
        """Begin a step with the latest of ``groups``, if there are enough of them."""
        if len(groups) < self.settings.groups:
            return
        number = self.versions.number + 1
        self.trainer.submit(
            Job(
                number=number,
                version=self.versions.latest,
                groups=tuple(groups[-self.settings.groups :]),
                progress=self.progress(),
                folder=checkpoint(self.folder, number),
                kept=self.versions.since_collapse & {0, *checkpoints(self.folder)},
                variety=self.versions.variety,
            )
        )

    def update(self, done: Done, *, stale: int, swap_ms: float = 0.0) -> Update:
        """Return what is recorded of a step that is over.

        Args:
            done: the step.
            stale: groups that were left out before it.
            swap_ms: milliseconds that the sampler took to load its adapter.
        """
        groups = done.job.groups
        figures: dict[str, Any] = {
            name: 0.0 if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(done.step).items()
        }
        found = {
            "number": done.job.number,
            "version": done.version,
            "groups": tuple(group.iteration for group in groups),
            "stale": stale,
            "progress": done.job.progress,
            "lag": sum(self.versions.lag(group.adapter) for group in groups) / len(groups),
            "swap_ms": swap_ms,
        }
        return Update(**(figures | found))

    def remove_checkpoints(self, *, needed: Collection[int]) -> None:
        """Remove the checkpoints that no session, no step that goes back and no call needs.

        Args:
            needed: versions that children are still to be decoded with.
        """
        kept = {*self.versions.last(_KEPT), *needed}
        for version, folder in checkpoints(self.folder).items():
            if version not in kept:
                shutil.rmtree(folder, ignore_errors=True)


def most_waiting(settings: LearningSettings) -> int:
    """Return how many groups may wait for a step; enough for one, however large it is."""
    return max(_MOST, settings.groups)


def checkpoint(folder: Path, version: int) -> Path:
    """Return the folder of a version's adapter, in a run's folder."""
    return folder / _ADAPTERS / f"{version:06}"


def checkpoints(folder: Path) -> Mapping[int, Path]:
    """Return the folders of the versions that are kept in a run's folder."""
    return {int(each.name): each for each in sorted((folder / _ADAPTERS).glob("[0-9]*"))}


def needed_checkpoint(folder: Path, version: int) -> Path:
    """Return the folder of a version that a run goes on with.

    Raises:
        UserError: it is not there.
    """
    found = checkpoint(folder, version)
    if not found.is_dir():
        raise UserError(f"{found} is missing, which the run goes on with; restore it from a copy")
    return found
