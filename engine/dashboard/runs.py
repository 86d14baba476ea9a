"""All runs of a folder, read on together within a time that a refresh may take."""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from engine.core import UserError
from engine.dashboard.run import WatchedRun
from engine.dashboard.snapshot import Snapshot, snapshot_of
from engine.store import is_run

_PAUSE = 1.0  # seconds between two refreshes
_SHORT_PAUSE = 0.1  # the same, as long as there are logs to read for the first time
_READING_SECONDS = 0.4  # of a refresh, for all runs together
_MOST = 1000  # runs of a folder
_KEPT = 4  # runs whose figures are kept
_REST = 3  # times what the figures took is between two times that they are made


class WatchedRuns:
    """The runs in a folder and, one level down, in those of its sweeps. Any thread may use it.

    Attributes:
        folder: where they lie.
        seconds: that the last refresh took.
        is_cut: whether the folder has more runs than are shown.
    """

    def __init__(self, folder: Path) -> None:
        """Read nothing yet.

        Raises:
            UserError: there is no such folder, or it is a run itself.
        """
        if not folder.is_dir():
            raise UserError(f"{folder} is no folder; give the one that runs lie in, such as runs/")
        if is_run(folder):
            raise UserError(f"{folder} is a run; give the folder that it lies in: {folder.parent}")
        self.folder = folder
        self.seconds = 0.0
        self.is_cut = False
        self._runs: dict[str, WatchedRun] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._lock = threading.Lock()
        self._drawing = threading.Lock()
        self._refreshed = float("-inf")

    @property
    def pause(self) -> float:
        """Seconds until the next refresh is worth while."""
        return _SHORT_PAUSE if any(run.is_behind for run in self._runs.values()) else _PAUSE

    def refresh(self, *, first: str | None = None) -> Mapping[str, WatchedRun]:
        """Return the runs by name, read on if that is due.

        Args:
            first: name of the run that is read before the others.
        """
        with self._lock:
            began = time.monotonic()
            if began - self._refreshed >= self.pause / 2:
                self._refresh(first, began + _READING_SECONDS)
                self._refreshed = time.monotonic()
                self.seconds = self._refreshed - began
            return dict(self._runs)

    def snapshot(self, run: WatchedRun) -> Snapshot | None:
        """Return a run's figures, not older than the time that making them takes demands.

        None as long as nothing of the run was read.
        """
        with self._drawing:
            last = self._snapshots.get(run.name)
            if last is not None and last.run is not run:
                last = None
            if last is not None:
                rests = time.monotonic() - last.made < _REST * last.seconds
                if rests or (last.changes == run.changes and not last.error):
                    return last
            with run.lock:
                if not run.changes:
                    return None
                made = snapshot_of(run)
                run.flaw = made.error
            others = [each for each in self._snapshots.items() if each[0] != run.name]
            self._snapshots = dict([*others[1 - _KEPT :], (run.name, made)])
            return made

    def _refresh(self, first: str | None, deadline: float) -> None:
        found = list(islice(_found(self.folder), _MOST + 1))
        self.is_cut = len(found) > _MOST
        self._runs = {
            name: self._runs.get(name) or WatchedRun(name, folder)
            for name, folder in sorted(found[:_MOST])
        }

        # Whoever is looked at comes first, then those that are nearly read. Those that can't be
        # read come last: a server that does not answer is waited for.
        def place(run: WatchedRun) -> tuple[bool, bool, bool]:
            return run.name != first, run.error != "", run.is_behind

        for run in sorted(self._runs.values(), key=place):
            if run.lock.acquire(blocking=False):  # its figures are being made: the next time
                try:
                    run.refresh(deadline=deadline)
                finally:
                    run.lock.release()


def _found(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield runs by name; a folder that is being made begins with a dot."""
    for outer in _folders(folder):
        inner = [outer] if is_run(outer) else [each for each in _folders(outer) if is_run(each)]
        for each in inner:
            yield os.fsencode(each.relative_to(folder)).decode(errors="replace"), each


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(
            Path(each.path)
            for each in os.scandir(folder)
            if not each.name.startswith(".") and each.is_dir()
        )
    except OSError:  # it may be gone by now
        return []
