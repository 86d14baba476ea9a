"""Recording: an event goes to the log, and everyone who follows the run takes it in."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from engine.api.events import Tell
from engine.core import Event
from engine.learning import Learning
from engine.pipeline import RunState
from engine.store import EventLog, RunHistory

Watch = Callable[[RunHistory], AbstractContextManager[Callable[[], object]]]
"""Given a run's history, returns what is called after each event, as a context manager."""


def unwatched(history: RunHistory) -> AbstractContextManager[Callable[[], object]]:
    """Show nobody what becomes of a run."""
    return nullcontext(lambda: None)


def told_nobody(events: Sequence[Event]) -> None:
    """Tell nobody what was recorded."""


@dataclass(kw_only=True)
class Recorder:
    """Appends events to a run's log, and hands each on.

    Attributes:
        log: the run's.
        state: follows it.
        learner: likewise; None where nothing learns.
        tell: called after each commit with the events that are now on disk.
        update: called after each event.
    """

    log: EventLog
    state: RunState
    learner: Learning | None
    tell: Tell
    update: Callable[[], object]
    _fresh: list[Event] = field(default_factory=list)  # not on disk yet

    def record(self, event: Event) -> None:
        """Append an event, and fold it into what follows the run."""
        self.state.fold(self.log.append(event))
        self._fresh.append(event)
        if self.learner is not None:
            self.learner.fold(event)
        self.update()

    def commit(self) -> None:
        """Bring what was recorded to disk, with the steps of training that are over."""
        for step in self.learner.completed() if self.learner is not None else ():
            self.record(step)
        self.log.commit()
        if self._fresh:
            self.tell(tuple(self._fresh))
            self._fresh.clear()
