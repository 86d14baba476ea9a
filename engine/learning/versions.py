"""The versions of the adapter, in the order in which they came in force.

**Lag.** Decoding does not wait for training. A group lags by the number of changes of the version
since its own was in force last. One that lags by more than ``learning.max_lag`` is left out, and
counted.
"""

from collections.abc import Sequence

from engine.core import Update
from engine.learning.collapse import Variety


class Versions:
    """A fold of the steps of training."""

    def __init__(self, *, max_lag: int) -> None:
        """Begin with the model itself, version 0.

        Args:
            max_lag: versions that a group may lag behind.
        """
        self._max_lag = max_lag
        self._order = [0]
        self.number = 0
        """Of the last step; 0 before the first."""
        self.variety = Variety()
        """Of all steps, also those that were skipped or taken back."""

    @property
    def latest(self) -> int:
        """The version in force."""
        return self._order[-1]

    def fold(self, update: Update) -> None:
        """Take a step in."""
        self.number = update.number
        self.variety = self.variety.after(update.unique)
        is_other = update.version != self._order[-1]
        # Only a collapse: a bad step that is undone stays at its version, and had no fault before.
        if update.rolled_back is not None and (is_other or self.variety.fault is not None):
            self.variety = self.variety.forgiven()
        if is_other:
            self._order.append(update.version)

    @property
    def since_collapse(self) -> frozenset[int]:
        """The versions since the last collapse, with the one it went back to; all without one."""
        order, begin = self._order, len(self._order) - 1
        while begin and order[begin - 1] < order[begin]:
            begin -= 1
        return frozenset(order[begin:])

    def lag(self, version: int) -> int:
        """Return how often the version changed since this one was in force."""
        return self._order[::-1].index(version)

    def is_stale(self, version: int) -> bool:
        """Whether nothing is learned any more from what was sampled from a version."""
        return self.lag(version) > self._max_lag

    def last(self, count: int) -> Sequence[int]:
        """Return the versions that were in force last, the latest first, each once."""
        return list(dict.fromkeys(reversed(self._order)))[:count]
