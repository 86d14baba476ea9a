"""Evaluators whose verdicts come after random delays, some very late, some lost, some never."""

from __future__ import annotations

import heapq
import itertools
import random
import threading
import time
from collections.abc import Callable

from chance_model import digest
from fault_lists import Fate, Kind

from engine.core import Evaluation, Failure

_LATE = 20  # times as long as other verdicts
_LEAST_LATE = 0.01  # seconds


class LatePool:
    """Evaluators that run nothing: a verdict follows from the program; a context manager."""

    def __init__(
        self,
        *,
        seconds: float,
        rng: random.Random,
        fate: Fate,
        ring: Callable[[], object],
        note: Callable[[str, int], None],
    ) -> None:
        """Begin with nothing to evaluate.

        Args:
            seconds: the most that an evaluation takes which is not late.
            rng: chooses how long each takes.
            fate: says which are late, or lost, or never end.
            ring: called, in another thread, when a verdict is in.
            note: told each program that is to be evaluated, and the stage.
        """
        self._seconds = seconds
        self._fate = fate
        self._rng = random.Random(rng.random())
        self._ring = ring
        self._note = note
        self._change = threading.Condition()
        self._numbers = itertools.count()
        self._waiting: list[tuple[float, int, str, Evaluation]] = []
        self._finished: list[tuple[str, Evaluation]] = []
        self._closing = False
        self._thread = threading.Thread(target=self._work, daemon=True)

    def submit(self, *, candidate_id: str, program: str, stage: int, order: int) -> None:
        self._note(candidate_id, stage)
        if self._fate.befalls(Kind.NEVER):
            return
        delay = self._rng.random() * self._seconds
        if self._fate.befalls(Kind.LATE):
            delay = max(_LEAST_LATE, delay * _LATE)
        evaluation = verdict(program)
        if self._fate.befalls(Kind.CRASH):
            evaluation = Evaluation(score=None, failure=Failure.CRASH, message="it was lost")
        entry = time.monotonic() + delay, next(self._numbers), candidate_id, evaluation
        with self._change:
            heapq.heappush(self._waiting, entry)
            self._change.notify()

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        assert timeout == 0  # the loop waits for its bell, never for the evaluators
        with self._change:
            finished, self._finished = self._finished, []
            return finished

    def __enter__(self) -> LatePool:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        with self._change:
            self._closing = True
            self._change.notify()
        self._thread.join()

    def _work(self) -> None:
        with self._change:
            while not self._closing:
                now = time.monotonic()
                if self._waiting and self._waiting[0][0] <= now:
                    self._finished.append(heapq.heappop(self._waiting)[2:])
                    self._ring()
                else:
                    self._change.wait(self._waiting[0][0] - now if self._waiting else None)


def verdict(program: str) -> Evaluation:
    """Return the verdict on a program, whoever evaluates it, and however often."""
    chance = digest(program)
    if chance[0] < 40:
        return Evaluation(score=None, failure=Failure.ERROR, message="line 2: no")
    score = int.from_bytes(chance[1:5], "big") / 2**32
    return Evaluation(score=score, failure=None, metrics={"score": score}, seconds=score)
