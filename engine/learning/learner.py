"""Learning while a run goes on: groups out of events, steps of training, and the adapter in force.

The learner is a fold of the run's events, like the search. When all children of a call are judged,
they are a group. As soon as ``learning.groups`` of them are there and the trainer is free, they
make up a step. Its adapter is loaded into the running model, and then the step is recorded. From
that event on, calls begin with the new version. So the log says which version each call had, and a
run that goes on continues with the adapter of the last recorded step.

**Lag.** Decoding does not wait for training. A group whose adapter is more than
``learning.max_lag`` versions old when a step begins is left out, and counted.

Does not cover the step itself (``trainer.py``, in ``process.py``).
"""

import logging
import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

from engine.core import Call, Child, Event, Update, Verdict
from engine.learning.groups import MakeGroup
from engine.learning.process import Done, Job, TrainerProcess
from engine.settings import LearningSettings
from engine.store import RunHistory

ADAPTERS = "adapters"
"""Name of the folder with the checkpoints in a run's folder."""
_KEPT = 6  # checkpoints, besides those of calls that are not over; a collapse goes back by four
_log = logging.getLogger("brood")


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
    _stale: int = field(default=0, init=False)
    _loading: Done | None = field(default=None, init=False)
    _adopter: Adopter | None = field(default=None, init=False)

    def serve(self, adopter: Adopter) -> None:
        """Begin to hand adapters to ``adopter``, first those that recorded calls still need."""
        self._adopter = adopter
        needed = {self.history.adapter, *(self.history.calls[i].adapter for i in self._awaited)}
        for version in sorted(needed - {0}):
            adopter.adopt(version, self.checkpoint(version))

    def fold(self, event: Event) -> None:
        """Take in an event that is recorded, and that the history has."""
        if isinstance(event, Call):
            self._awaited[event.iteration] = event.k
        elif isinstance(event, Child) and event.refusal is not None:
            self._note_judged(event)
        elif isinstance(event, Verdict) and event.candidate in self.history.children:
            self._note_judged(self.history.children[event.candidate])
        elif isinstance(event, Update):
            learned = set(event.groups)
            self._judged = deque(each for each in self._judged if each not in learned)

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
        """Begin a step if there are enough groups that do not lag too far behind."""
        if len(self._judged) < self.settings.groups:
            return
        oldest = self.history.adapter - self.settings.max_lag
        groups = []
        for iteration in list(self._judged):
            call = self.history.calls[iteration]
            group = self.make_group(call, self.history) if call.adapter >= oldest else None
            self._stale += call.adapter < oldest
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
        stale, self._stale = self._stale, 0
        found = {**asdict(done.step), "version": done.version}
        return Update(
            number=done.job.number,
            groups=tuple(group.iteration for group in done.job.groups),
            stale=stale,
            progress=done.job.progress,
            swap_ms=swap_ms,
            **found,
        )

    def _note_judged(self, child: Child) -> None:
        self._awaited[child.iteration] -= 1
        if not self._awaited[child.iteration]:
            del self._awaited[child.iteration]
            self._judged.append(child.iteration)

    def _remove_checkpoints(self) -> None:
        """Remove the checkpoints that neither the next sessions nor open calls need."""
        open_calls = {self.history.calls[iteration].adapter for iteration in self._awaited}
        kept = {self.checkpoint(version).name for version in open_calls}
        folders = sorted((self.folder / ADAPTERS).glob("[0-9]*"))
        for folder in folders[:-_KEPT]:
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)
