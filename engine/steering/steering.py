"""The side of the run: takes up requests, and knows whether to pause, to stop, and what to hint."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from engine.steering.requests import discard, show_paused, take

_SECONDS_BETWEEN_LOOKS = 0.25


@dataclass(kw_only=True)
class Steering:
    """What is asked of one session of a run.

    Requests that were left before it began, or when it is over, are removed unread.

    Attributes:
        folder: the run's; None where nobody can ask for anything.
        leave_out: told the seconds in which the run stood paused, which no clock is to count.
        is_paused: whether no further call is to be asked for.
        is_stopped: whether the run is to end in good order.
    """

    folder: Path | None = None
    leave_out: Callable[[float], object] = lambda seconds: None
    is_paused: bool = field(init=False, default=False)
    is_stopped: bool = field(init=False, default=False)
    _refused: set[str] = field(init=False, default_factory=set)
    _looked: float = field(init=False, default=float("-inf"))

    def __post_init__(self) -> None:
        if self.folder is not None:
            discard(self.folder)

    def hints(self) -> list[str]:
        """Take up what was asked since the last time; return the hints among it, in order.

        An empty one ends the last. Looks into the folder no more often than four times a second.
        """
        if self.folder is None or time.monotonic() - self._looked < _SECONDS_BETWEEN_LOOKS:
            return []
        self._looked = time.monotonic()
        found = []
        for request in take(self.folder, refused=self._refused):
            if request.kind == "hint":
                found.append(request.text)
            elif request.kind == "stop":
                self.is_stopped = True
            else:
                self.is_paused = request.kind == "pause"
                show_paused(self.folder, self.is_paused)
        return found

    def end(self) -> None:
        """Take up nothing any more."""
        if self.folder is not None:
            discard(self.folder)
