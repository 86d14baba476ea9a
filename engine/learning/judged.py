"""The calls of a log whose children are all judged, and that nothing was learned from yet."""

from collections import Counter, deque

from engine.core import Call, Child, Event, Update, Verdict
from engine.learning.versions import Versions
from engine.store import RunHistory


class Judged:
    """A fold of a log's events."""

    def __init__(self, history: RunHistory, *, max_lag: int, most: int | None = None) -> None:
        """Begin with no event.

        Args:
            history: of the log; it has every event before this has.
            max_lag: see `Versions`.
            most: calls that wait; the earliest are left out for later ones. None for all.
        """
        self._history = history
        self._most = most
        self._awaited = Counter[int]()  # children, by iteration
        self._missing = Counter[int]()  # those of them that are not recorded
        self.waiting = deque[int]()
        """Iterations to learn from, in the order in which they were judged."""
        self.stale = 0
        """How many were left out since the last step."""
        self.versions = Versions(max_lag=max_lag)
        """As they came in force."""

    @property
    def open_versions(self) -> set[int]:
        """The versions that children are still to be decoded with; a verdict needs none."""
        return {self._history.calls[iteration].adapter for iteration in self._missing}

    def fold(self, event: Event) -> None:
        """Take in an event that is recorded."""
        if isinstance(event, Call):
            self._awaited[event.iteration] = self._missing[event.iteration] = event.k
        elif isinstance(event, Child):
            self._fold_child(event)
        elif isinstance(event, Verdict) and event.candidate in self._history.children:
            self._note(self._history.children[event.candidate])
        elif isinstance(event, Update):
            self._fold_update(event)

    def _fold_child(self, child: Child) -> None:
        self._missing[child.iteration] -= 1
        if not self._missing[child.iteration]:
            del self._missing[child.iteration]
        if child.refusal is not None:
            self._note(child)

    def _fold_update(self, update: Update) -> None:
        self.versions.fold(update)
        left = [each for each in self.waiting if each not in update.groups]
        self.waiting = deque(each for each in left if not self._is_stale(each))
        self.stale = len(left) - len(self.waiting)

    def _note(self, child: Child) -> None:
        """Note that a child is judged."""
        iteration = child.iteration
        self._awaited[iteration] -= 1
        if self._awaited[iteration]:
            return
        del self._awaited[iteration]
        if self._is_stale(iteration):
            self.stale += 1
        else:
            self.waiting.append(iteration)
        if self._most is not None and len(self.waiting) > self._most:
            self.waiting.popleft()
            self.stale += 1

    def _is_stale(self, iteration: int) -> bool:
        return self.versions.is_stale(self._history.calls[iteration].adapter)
