"""Learning while a run goes on: groups out of events, steps of training, and the adapter in force.

The learner is a fold of the run's events, like the search. When all children of a call are judged,
they are a group. As soon as ``learning.groups`` of them are there and the trainer is free, they
make up a step. Its adapter is loaded into the running model, and then the step is recorded. From
that event on, calls begin with the new version. So the log says which version each call had, and a
run that goes on continues with the adapter of the last recorded step.

Does not cover which calls are there to learn from (``judged.py``), or the step itself
(``trainer.py``, in ``process.py``).
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from engine.core import Event, Update
from engine.learning.group import Group
from engine.learning.groups import MakeGroup
from engine.learning.job import Done
from engine.learning.judged import Judged
from engine.learning.steady import SteadyTrainer
from engine.learning.steps import Steps, checkpoint, most_waiting, needed_checkpoint
from engine.settings import LearningSettings
from engine.store import RunHistory


class Adopter(Protocol):
    """Who samples, as `engine.inference.Decoder`."""

    def adopt(self, version: int, folder: Path) -> None:
        """Begin to load an adapter under a version."""

    def adopted(self) -> list[tuple[int, float]]:
        """Return the versions that were loaded since the last time, and the milliseconds."""


class Learning(Protocol):
    """What follows a run so that its model learns; see `Learner`, which is one."""

    def serve(self, adopter: Adopter) -> None:
        """Begin to hand adapters to ``adopter``, first those that recorded calls still need."""

    def spare(self, under_way: Callable[[], Collection[int]]) -> None:
        """Keep those versions too that ``under_way`` returns, whenever it is asked.

        A call that began on a guess is decoded before it is recorded, if it ever is.
        """

    def fold(self, event: Event) -> None:
        """Take in an event that is recorded, and that the history has."""

    def completed(self) -> Iterable[Update]:
        """Yield the steps that are over, for the log; begin the next one if it is time."""


@dataclass(kw_only=True)
class Learner:
    """Trains the model of one run.

    Attributes:
        settings: the run's.
        history: the run's; it has every event before the learner has.
        folder: the run's.
        make_group: makes a group of a call that is judged.
        trainer: does the steps.
        progress: returns the share of the budget that is spent, from 0 to 1.
    """

    settings: LearningSettings
    history: RunHistory
    folder: Path
    make_group: MakeGroup
    trainer: SteadyTrainer
    progress: Callable[[], float]
    _judged: Judged = field(init=False)
    _steps: Steps = field(init=False)
    _loading: Done | None = field(default=None, init=False)
    _adopter: Adopter | None = field(default=None, init=False)
    _under_way: Callable[[], Collection[int]] = field(default=frozenset, init=False)

    def __post_init__(self) -> None:
        self._judged = Judged(
            self.history, max_lag=self.settings.max_lag, most=most_waiting(self.settings)
        )
        self._steps = Steps(
            settings=self.settings,
            folder=self.folder,
            trainer=self.trainer,
            versions=self._judged.versions,
            progress=self.progress,
        )

    def serve(self, adopter: Adopter) -> None:
        """See `Learning`.

        Raises:
            UserError: one of them is not in the run's folder.
        """
        self._adopter = adopter
        for version in sorted({self.history.adapter, *self._judged.open_versions} - {0}):
            adopter.adopt(version, needed_checkpoint(self.folder, version))

    def spare(self, under_way: Callable[[], Collection[int]]) -> None:
        """See `Learning`."""
        self._under_way = under_way

    def fold(self, event: Event) -> None:
        """See `Learning`."""
        self._judged.fold(event)

    def completed(self) -> Iterable[Update]:
        """See `Learning`."""
        assert self._adopter is not None  # nothing is recorded before it serves
        done = self.trainer.completed()
        if done is not None and done.version in (0, self.history.adapter):
            yield self._steps.update(done, stale=self._judged.stale)
        elif done is not None:
            self._loading = done
            self._adopter.adopt(done.version, checkpoint(self.folder, done.version))
        for version, milliseconds in self._adopter.adopted():
            loading = self._loading
            if loading is not None and loading.version == version:
                self._loading = None
                yield self._steps.update(loading, stale=self._judged.stale, swap_ms=milliseconds)
                self._steps.remove_checkpoints(
                    needed={*self._judged.open_versions, *self._under_way()}
                )
        if self._loading is None and self._steps.may_begin:
            self._begin()

    def _begin(self) -> None:
        """Begin a step if there are enough groups, with the latest; no other is made."""
        waiting, most = self._judged.waiting, self.settings.groups
        if len(waiting) < most:
            return
        groups: list[Group] = []
        for iteration in reversed([*waiting]):
            group = self.make_group(self.history.calls[iteration], self.history)
            if group is None:
                waiting.remove(iteration)
                continue
            groups.append(group)
            if len(groups) == most:
                self._steps.begin(groups[::-1])
                return
