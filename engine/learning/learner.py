"""Learning while a run goes on: groups out of events, steps of training, and the adapter in force.

The learner is a fold of the run's events, like the search. When all children of a call are judged,
they are a group. As soon as ``learning.groups`` of them are there and the trainer is free, they
make up a step. Its adapter is loaded into the running model, and then the step is recorded. From
that event on, calls begin with the new version. So the log says which version each call had, and a
run that goes on continues with the adapter of the last recorded step.

**Lag.** Decoding does not wait for training. A group lags by the number of changes of the version
since its own was in force last. One that lags by more than ``learning.max_lag`` is left out, and
counted.

Does not cover the step itself (``trainer.py``, in ``process.py``).
"""

import math
import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from engine.core import Call, Child, Event, Update, UserError, Verdict
from engine.learning.groups import MakeGroup
from engine.learning.process import Done, Job, TrainerProcess
from engine.settings import LearningSettings
from engine.store import RunHistory

ADAPTERS = "adapters"
"""Name of the folder with the checkpoints in a run's folder."""
_KEPT = 6  # checkpoints, besides those of calls that are not over; a collapse goes back by four


class Adopter(Protocol):
    """Who samples, as `engine.inference.Decoder`."""

    def adopt(self, version: int, folder: Path) -> None:
        """Begin to load an adapter under a version."""

    def adopted(self) -> list[tuple[int, float]]:
        """Return the versions that were loaded since the last time, and the milliseconds."""


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
    trainer: TrainerProcess
    progress: Callable[[], float]
    _awaited: Counter[int] = field(default_factory=Counter, init=False)  # children, by iteration
    _judged: deque[int] = field(default_factory=deque, init=False)  # iterations to learn from
    _stale: int = field(default=0, init=False)  # groups left out since the last step
    _versions: list[int] = field(default_factory=lambda: [0], init=False)  # as they came in force
    _loading: Done | None = field(default=None, init=False)
    _adopter: Adopter | None = field(default=None, init=False)

    def serve(self, adopter: Adopter) -> None:
        """Begin to hand adapters to ``adopter``, first those that recorded calls still need.

        Raises:
            UserError: one of them is not in the run's folder.
        """
        self._adopter = adopter
        for version in sorted({self.history.adapter, *self._open_versions()} - {0}):
            folder = self.checkpoint(version)
            if not folder.is_dir():
                raise UserError(
                    f"{folder} is missing, which the run goes on with; restore it from a copy"
                )
            adopter.adopt(version, folder)

    def fold(self, event: Event) -> None:
        """Take in an event that is recorded, and that the history has."""
        if isinstance(event, Call):
            self._awaited[event.iteration] = event.k
        elif isinstance(event, Child) and event.refusal is not None:
            self._note_judged(event)
        elif isinstance(event, Verdict) and event.candidate in self.history.children:
            self._note_judged(self.history.children[event.candidate])
        elif isinstance(event, Update):
            self._fold_update(event)

    def completed(self) -> Iterable[Update]:
        """Yield the steps that are over, for the log; begin the next one if it is time."""
        assert self._adopter is not None  # nothing is recorded before it serves
        done = self.trainer.completed()
        if done is not None and done.version in (0, self.history.adapter):
            yield self._update(done, swap_ms=0.0)
        elif done is not None:
            self._loading = done
            self._adopter.adopt(done.version, self.checkpoint(done.version))
        for version, milliseconds in self._adopter.adopted():
            loading = self._loading
            if loading is not None and loading.version == version:
                self._loading = None
                yield self._update(loading, swap_ms=milliseconds)
                self._remove_checkpoints()
        if self._loading is None and not self.trainer.is_busy and not self.trainer.is_lost:
            self._begin()

    def checkpoint(self, version: int) -> Path:
        """Return the folder of a version's adapter."""
        return self.folder / ADAPTERS / f"{version:06}"

    def _begin(self) -> None:
        """Begin a step if there are enough groups."""
        if len(self._judged) < self.settings.groups:
            return
        groups = []
        for iteration in list(self._judged):
            group = self.make_group(self.history.calls[iteration], self.history)
            if group is None:
                self._judged.remove(iteration)
            else:
                groups.append(group)
        if len(groups) < self.settings.groups:
            return
        number = len(self.history.updates) + 1
        self.trainer.submit(
            Job(
                number=number,
                version=self.history.adapter,
                groups=tuple(groups[-self.settings.groups :]),  # the latest
                progress=self.progress(),
                folder=self.checkpoint(number),
            )
        )

    def _update(self, done: Done, *, swap_ms: float) -> Update:
        groups = done.job.groups
        figures: dict[str, Any] = {
            name: 0.0 if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(done.step).items()
        }
        found = {
            "number": done.job.number,
            "version": done.version,
            "groups": tuple(group.iteration for group in groups),
            "stale": self._stale,
            "progress": done.job.progress,
            "lag": sum(self._lag(group.adapter) for group in groups) / len(groups),
            "swap_ms": swap_ms,
        }
        return Update(**(figures | found))

    def _fold_update(self, update: Update) -> None:
        if update.version != self._versions[-1]:
            self._versions.append(update.version)
        left = [each for each in self._judged if each not in update.groups]
        self._judged = deque(each for each in left if not self._is_stale(each))
        self._stale = len(left) - len(self._judged)

    def _note_judged(self, child: Child) -> None:
        iteration = child.iteration
        self._awaited[iteration] -= 1
        if self._awaited[iteration]:
            return
        del self._awaited[iteration]
        if self._is_stale(iteration):
            self._stale += 1
        else:
            self._judged.append(iteration)

    def _is_stale(self, iteration: int) -> bool:
        return self._lag(self.history.calls[iteration].adapter) > self.settings.max_lag

    def _lag(self, version: int) -> int:
        """Return how often the version changed since this one was in force."""
        return self._versions[::-1].index(version)

    def _open_versions(self) -> set[int]:
        """Return the versions of the calls that are not over."""
        return {self.history.calls[iteration].adapter for iteration in self._awaited}

    def _remove_checkpoints(self) -> None:
        """Remove the checkpoints that no session, no step that goes back and no call needs."""
        latest = list(dict.fromkeys(reversed(self._versions)))[:_KEPT]
        kept = {self.checkpoint(version).name for version in (*latest, *self._open_versions())}
        for folder in (self.folder / ADAPTERS).glob("[0-9]*"):
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)
