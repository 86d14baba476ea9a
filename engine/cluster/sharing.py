"""One decoder and one set of evaluators for the loops of several islands.

The loops run in one thread. What each gets looks as if it were its own: numbers and names are
prefixed on the way in, and answers are sorted on the way out. An island that leaves and comes back
is another client: answers to what it asked before it left are nobody's, though its calls and
candidates may have the same names again.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from engine.cluster.known import Known, key_of
from engine.core import Evaluation, Generation
from engine.evaluation import Evaluators
from engine.inference import Decoding, IsOver, Sampling
from engine.timeline import Timeline

_CALLS = 1 << 40  # of one client


class SharedDecoder:
    """Sorts what a decoder has decoded by whose call it is."""

    def __init__(self, decoder: Decoding) -> None:
        """Share a decoder, of which nobody else takes what is completed."""
        self.decoder = decoder
        self._boxes: dict[int, list[tuple[int, Generation]]] = {}  # by client
        self._clients = itertools.count()
        self._adopting: set[int] = set()
        self._adopted: dict[int, float] = {}

    @contextmanager
    def client(self) -> Iterator["DecoderClient"]:
        """Yield an island's decoder; what is under way when the block ends is ended."""
        number = next(self._clients)
        self._boxes[number] = []
        client = DecoderClient(self, number)
        try:
            yield client
        finally:
            client.abort_all()
            del self._boxes[number]

    def adopt(self, version: int, folder: Path) -> None:
        """Load a version of the adapter, once for all islands."""
        if version not in self._adopting:
            self._adopting.add(version)
            self.decoder.adopt(version, folder)

    def adopted(self) -> Mapping[int, float]:
        """Return the versions that are loaded, each with the milliseconds that it took."""
        self._adopted |= dict(self.decoder.adopted())
        return self._adopted

    def of(self, number: int) -> list[tuple[int, Generation]]:
        """Return what was decoded for a client since the last time."""
        for call, generation in self.decoder.completed():
            owner, own = divmod(call, _CALLS)
            if owner in self._boxes:  # else it has gone
                self._boxes[owner].append((own, generation))
        found, self._boxes[number] = self._boxes[number], []
        return found


class DecoderClient:
    """An island's decoder; see `Decoder`."""

    def __init__(self, shared: SharedDecoder, number: int) -> None:
        """Submit and take the calls of client ``number``."""
        self._shared = shared
        self._first = number * _CALLS
        self._number = number
        self._left: dict[int, int] = {}  # children under way, by call
        self._adopting: list[int] = []  # versions that the island waits for

    @property
    def in_flight(self) -> int:
        """See `Decoder.in_flight`."""
        return sum(self._left.values())

    def submit(
        self,
        call: int,
        *,
        iteration: int,
        token_ids: Sequence[int],
        sampling: Sequence[Sampling],
        is_over: IsOver,
        adapter: int = 0,
    ) -> None:
        """See `Decoder.submit`."""
        self._left[call] = len(sampling)
        self._shared.decoder.submit(
            self._first + call,
            iteration=iteration,
            token_ids=token_ids,
            sampling=sampling,
            is_over=is_over,
            adapter=adapter,
        )

    def adopt(self, version: int, folder: Path) -> None:
        """See `Decoder.adopt`; what another island had loaded is there already."""
        self._adopting.append(version)
        self._shared.adopt(version, folder)

    def adopted(self) -> list[tuple[int, float]]:
        """See `Decoder.adopted`."""
        if not self._adopting:
            return []
        loaded = self._shared.adopted()
        found = [(each, loaded[each]) for each in self._adopting if each in loaded]
        self._adopting = [each for each in self._adopting if each not in loaded]
        return found

    def abort(self, call: int) -> None:
        """See `Decoder.abort`."""
        self._shared.decoder.abort(self._first + call)

    def abort_all(self) -> None:
        """End all calls that are under way."""
        for call in self._left:
            self.abort(call)

    def completed(self) -> list[tuple[int, Generation]]:
        """See `Decoder.completed`."""
        found = self._shared.of(self._number)
        for call, _ in found:
            self._left[call] -= 1
            if not self._left[call]:
                del self._left[call]
        return found


class SharedEvaluators:
    """Sorts the verdicts of a pool by whose program it was, and has each program run once."""

    def __init__(
        self,
        pool: Evaluators,
        *,
        known: Known | None = None,
        notify: Callable[[], object] = lambda: None,
    ) -> None:
        """Share a pool, of which nobody else takes the verdicts.

        Args:
            pool: to be shared.
            known: verdicts that need not be reached again; None to run all programs.
            notify: called when such a verdict is there at once.
        """
        self.pool = pool
        self._known = known
        self._notify = notify
        self._boxes: dict[str, list[tuple[str, Evaluation]]] = {}  # by client
        self._clients = itertools.count()
        self._asked: dict[str, list[tuple[str, str]]] = {}  # who asked, and its name, by key

    @contextmanager
    def client(self) -> Iterator["EvaluatorsClient"]:
        """Yield an island's evaluators; what is under way when the block ends comes to nobody."""
        name = str(next(self._clients))
        self._boxes[name] = []
        try:
            yield EvaluatorsClient(self, name)
        finally:
            del self._boxes[name]

    def submit(self, owner: str, name: str, *, program: str, stage: int | None, order: int) -> None:
        """Queue an island's program, unless its verdict is known or under way."""
        key = f"{owner}/{name}" if self._known is None else key_of(program, stage=stage)
        if key in self._asked:
            self._asked[key].append((owner, name))
        elif self._known is not None and (found := self._known.find(key)) is not None:
            self._boxes[owner].append((name, found))
            self._notify()
        else:
            self._asked[key] = [(owner, name)]
            self.pool.submit(candidate_id=key, program=program, stage=stage, order=order)

    def of(self, name: str, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        """Return an island's verdicts since the last time; wait for the first up to ``timeout``."""
        while True:
            wait = 0 if self._boxes[name] else timeout
            for key, evaluation in self.pool.completed(timeout=wait):
                if self._known is not None:
                    self._known.put(key, evaluation)
                for owner, own in self._asked.pop(key):
                    if owner in self._boxes:  # else it has gone
                        self._boxes[owner].append((own, evaluation))
                        evaluation = replace(evaluation, seconds=0.0)  # they are one island's
            if self._boxes[name] or timeout is not None:
                found, self._boxes[name] = self._boxes[name], []
                return found


class EvaluatorsClient:
    """An island's evaluators; see `Evaluators`. The owner of the pool watches it."""

    def __init__(self, shared: SharedEvaluators, name: str) -> None:
        """Submit and take the programs of the island ``name``."""
        self._shared = shared
        self._name = name
        self._out = 0

    @property
    def in_flight(self) -> int:
        """See `Evaluators.in_flight`."""
        return self._out

    def submit(
        self, *, candidate_id: str, program: str, stage: int | None = None, order: int = 0
    ) -> None:
        """See `Evaluators.submit`."""
        self._out += 1
        self._shared.submit(self._name, candidate_id, program=program, stage=stage, order=order)

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        """See `Evaluators.completed`."""
        found = self._shared.of(self._name, timeout=timeout) if self._out else []
        self._out -= len(found)
        return found

    def announce_to(self, notify: Callable[[], object]) -> None:
        """Do nothing: all islands have one bell, which the pool rings."""

    def watch(self, timeline: Timeline) -> None:
        """Do nothing: see above."""

    def check_walls(self, *, strict: bool) -> None:
        """Do nothing: see above."""
