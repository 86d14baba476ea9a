"""Evaluators in several places, which look like one pool.

Each place gets as many programs as its workers can run and as many again, so that none waits for
the network; the most urgent go first. The programs of a place that is lost go to the others.
"""

import heapq
import itertools
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.core import Evaluation, UserError
from engine.evaluation import Evaluators
from engine.timeline import Timeline

_AHEAD = 2  # programs at a place, for each of its workers
_PATIENCE = 1.0  # seconds for which a place is asked for its next verdict
_log = logging.getLogger("brood")


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Submission:
    """A program on its way; the smallest is the most urgent."""

    order: int
    ticket: int
    name: str = field(compare=False)
    program: str = field(compare=False)
    stage: int | None = field(compare=False)


class OutpostLost(Exception):
    """A place with evaluators is dead, or does not answer."""


class OutpostHandle(Protocol):
    """Evaluators at another place."""

    workers: int

    def submit(self, programs: Sequence[Submission]) -> None:
        """Send programs there.

        Raises:
            OutpostLost: it is dead, or does not answer.
        """

    def take(self, seconds: float) -> Sequence[tuple[str, Evaluation]]:
        """Return the verdicts since the last time; wait up to ``seconds`` for the first.

        Raises:
            OutpostLost: see `submit`.
            UserError: it can evaluate nothing any more.
        """

    def kill(self) -> None:
        """End it, so that who started it starts another one; idempotent."""


@dataclass(kw_only=True)
class _Place:
    """A place, and the programs that are there. ``handle`` is None for the local pool."""

    handle: OutpostHandle | None
    workers: int
    out: dict[str, Submission] = field(default_factory=dict)


class SpreadEvaluators:
    """See `Evaluators`. Verdicts come in any order, each once."""

    def __init__(self, local: Evaluators, *, workers: int) -> None:
        """Have the evaluators of this process only.

        Args:
            local: nobody else takes its verdicts.
            workers: how many they are.
        """
        self._local = local
        self._change = threading.Condition()
        self._waiting: list[Submission] = []  # a heap
        self._tickets = itertools.count()
        self._places = [_Place(handle=None, workers=workers)]
        self._finished: list[tuple[str, Evaluation]] = []
        self._announce: Callable[[], object] = lambda: None
        self._is_closed = False
        self._has_failed = False  # the local pool, since `completed` was called
        local.announce_to(self._ring)

    @property
    def workers(self) -> int:
        """How many there are, over all places."""
        with self._change:
            return sum(each.workers for each in self._places)

    def add(self, handle: OutpostHandle) -> None:
        """Use the evaluators of another place too."""
        place = _Place(handle=handle, workers=handle.workers)
        with self._change:
            self._places.append(place)
        threading.Thread(target=self._follow, args=(place, handle), daemon=True).start()
        self._dispatch()

    @property
    def in_flight(self) -> int:
        """See `Evaluators.in_flight`."""
        with self._change:
            under_way = sum(len(each.out) for each in self._places)
            return len(self._waiting) + under_way + len(self._finished)

    def submit(
        self, *, candidate_id: str, program: str, stage: int | None = None, order: int = 0
    ) -> None:
        """See `Evaluators.submit`."""
        submission = Submission(
            order=order,
            ticket=next(self._tickets),
            name=candidate_id,
            program=program,
            stage=stage,
        )
        with self._change:
            heapq.heappush(self._waiting, submission)
        self._dispatch()

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        """See `Evaluators.completed`."""
        self._has_failed = False
        self._take_local()
        with self._change:
            self._change.wait_for(self._has_news, timeout)
            found, self._finished = self._finished, []
        if self._has_failed and not found:
            self._take_local()  # which raises what `_ring` could tell nobody
        return found

    def announce_to(self, notify: Callable[[], object]) -> None:
        """See `Evaluators.announce_to`."""
        self._announce = notify

    def watch(self, timeline: Timeline) -> None:
        """Record when the workers of this process are busy."""
        self._local.watch(timeline)

    def check_walls(self, *, strict: bool) -> None:
        """Check those of this process; each place has checked its own."""
        self._local.check_walls(strict=strict)

    def close(self) -> None:
        """Follow no other place any more; what is there comes to nobody."""
        with self._change:
            self._is_closed = True
            self._change.notify_all()

    def _has_news(self) -> bool:
        is_busy = bool(self._waiting) or any(each.out for each in self._places)
        return bool(self._finished) or self._has_failed or not is_busy

    def _ring(self) -> None:
        try:
            self._take_local()
        except UserError:  # `completed` raises it again, where somebody can do something
            with self._change:
                self._has_failed = True
                self._change.notify_all()

    def _take_local(self) -> None:
        here = self._places[0]
        for name, evaluation in self._local.completed(timeout=0):
            self._deliver(here, name, evaluation)
        self._dispatch()

    def _deliver(self, place: _Place, name: str, evaluation: Evaluation) -> None:
        with self._change:
            if place.out.pop(name, None) is None:
                return  # it was given up there, and is somewhere else
            self._finished.append((name, evaluation))
            self._change.notify_all()
        self._announce()

    def _dispatch(self) -> None:
        """Send what there is room for, to the place that has most of it."""
        while True:
            with self._change:
                place = max(self._places, key=_room)
                if not self._waiting or _room(place) <= 0:
                    return
                submission = heapq.heappop(self._waiting)
                place.out[submission.name] = submission
            if place.handle is None:
                self._local.submit(
                    candidate_id=submission.name,
                    program=submission.program,
                    stage=submission.stage,
                    order=submission.order,
                )
                continue
            try:
                place.handle.submit([submission])
            except OutpostLost as error:
                self._give_up(place, error)

    def _follow(self, place: _Place, handle: OutpostHandle) -> None:
        """Take a place's verdicts, until it is lost; a thread of its own."""
        try:
            while not self._is_closed:
                for name, evaluation in handle.take(_PATIENCE):
                    self._deliver(place, name, evaluation)
                self._dispatch()
        except Exception as error:  # whatever it is, its programs need another place
            self._give_up(place, error)

    def _give_up(self, place: _Place, error: Exception) -> None:
        """End a place that is of no more use; its programs go to the others."""
        with self._change:
            if place not in self._places:
                return
            self._places.remove(place)
            for submission in place.out.values():
                heapq.heappush(self._waiting, submission)
            count = len(place.out)
            place.out.clear()
        if not self._is_closed:
            _log.warning(
                "%d evaluators are lost (%s); %d programs go to others", place.workers, error, count
            )
        self._dispatch()
        if place.handle is not None and not self._is_closed:
            place.handle.kill()


def _room(place: _Place) -> float:
    """Return how many more programs a place should have, for each of its workers."""
    return _AHEAD - len(place.out) / place.workers
