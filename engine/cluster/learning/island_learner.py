"""Learning on a worker: groups of its islands go out, versions of the adapter come in.

Nobody trains here. What an island has judged is handed in for the trainer of the whole run, and a
version that came of it is fetched once, loaded once into the worker's model, and then recorded by
each island, whose calls begin with it from there on. An island that comes to a worker records the
latest step before it asks for a call: it may have been nowhere for so long that the version with
which its log ends is there no more.
"""

import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from engine.cluster.files import Files, put_files
from engine.cluster.learning.shared_update import SharedUpdate
from engine.core import Event, Update, UserError
from engine.learning import Adopter, Group, Judged, MakeGroup
from engine.store import RunHistory


class Stored(Protocol):
    """The files of a version, somewhere in the cluster. It may be sent to a worker."""

    def get(self) -> Files:
        """Return them.

        Raises:
            UserError: they are lost.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """How an island stands, for the trainer.

    Attributes:
        share: of its budget that is spent, from 0 to 1.
        versions: that its next call begins with, and that children of its calls are still to be
            decoded with.
    """

    share: float
    versions: frozenset[int]


class WorkerLearning:
    """What a worker's islands hand in, and the versions that are there for them."""

    def __init__(self, folder: Path) -> None:
        """Have nothing.

        Args:
            folder: for the versions' files.
        """
        self._folder = folder
        self._stored: Mapping[int, Stored] = {}
        self.latest: SharedUpdate | None = None
        """The last step of the trainer that was heard of."""
        self.groups: SimpleQueue[Group] = SimpleQueue()
        """Of calls that are judged, for the trainer."""
        self.standings: dict[int, Standing] = {}
        """Of the islands that are or were here, by number."""

    def take(self, latest: SharedUpdate, stored: Mapping[int, Stored]) -> None:
        """Take in that a step is over.

        Args:
            latest: the step.
            stored: all versions that may be asked for from now on.
        """
        if self.latest is not None and latest.update.number <= self.latest.update.number:
            return  # calls may overtake each other
        for version in self._stored.keys() - stored.keys():
            shutil.rmtree(self._path(version), ignore_errors=True)
        self.latest, self._stored = latest, stored

    def folder(self, version: int) -> Path:
        """Return the folder of a version, which is fetched if this is the first time.

        Raises:
            UserError: nobody has it.
        """
        path = self._path(version)
        if not path.is_dir():
            if version not in self._stored:
                raise UserError(f"version {version} of the adapter is not here yet")
            put_files(path, self._stored[version].get())
        return path

    def _path(self, version: int) -> Path:
        return self._folder / f"{version:06}"


@dataclass(kw_only=True)
class IslandLearner:
    """Learns for one island; see `Learning`.

    Attributes:
        number: the island's.
        history: of its run; it has every event before this has.
        make_group: makes a group of a call that is judged.
        share: returns the share of the island's budget that is spent.
        worker: the worker's.
        max_lag: versions that a group may lag behind.
    """

    number: int
    history: RunHistory
    make_group: MakeGroup
    share: Callable[[], float]
    worker: WorkerLearning
    max_lag: int
    _judged: Judged = field(init=False)
    _first: Update | None = field(default=None, init=False)  # to be recorded before all else
    _loading: Update | None = field(default=None, init=False)
    _adopter: Adopter | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._judged = Judged(self.history, max_lag=self.max_lag)

    def serve(self, adopter: Adopter) -> None:
        """See `Learning`. The first that is `completed` then is the latest step, if it is new.

        Raises:
            UserError: a version that the island goes on with is not here.
        """
        self._adopter = adopter
        self._first = self._news()
        own = self.history.adapter if self._first is None else self._first.version
        for version in sorted({own, *self._judged.open_versions} - {0}):
            adopter.adopt(version, self.worker.folder(version))

    def spare(self, under_way: Callable[[], Collection[int]]) -> None:
        """See `Learning`; no call of a cluster begins on a guess, so the log has them all."""

    def fold(self, event: Event) -> None:
        """See `Learning`."""
        self._judged.fold(event)

    def completed(self) -> Iterable[Update]:
        """Yield the step whose version is loaded now, as the island's log is to have it."""
        assert self._adopter is not None  # nothing is recorded before it serves
        self._hand_in()
        first, self._first = self._first, None
        if first is not None:
            yield first  # calls that begin now are decoded once its version is loaded
        update = self._news() if self._loading is None else None
        if update is not None:
            if update.version in (0, self.history.adapter):
                yield update
            else:
                self._adopter.adopt(update.version, self.worker.folder(update.version))
                self._loading = update
        for version, milliseconds in self._adopter.adopted():
            loading = self._loading
            if loading is not None and loading.version == version:
                self._loading = None
                yield replace(loading, swap_ms=milliseconds)

    def _news(self) -> Update | None:
        """Return the latest step, as the island's log is to have it; None if it has it."""
        latest, updates = self.worker.latest, self.history.updates
        if latest is None or (updates and latest.update.number <= updates[-1].number):
            return None
        return latest.for_island(self.number)

    def _hand_in(self) -> None:
        """Hand in what was judged since the last time."""
        while self._judged.waiting:
            call = self.history.calls[self._judged.waiting.popleft()]
            group = self.make_group(call, self.history)
            if group is not None:
                self.worker.groups.put(replace(group, log=self.number))
        self.worker.standings[self.number] = Standing(
            share=self.share(),
            versions=frozenset({self.history.adapter, *self._judged.open_versions}),
        )
