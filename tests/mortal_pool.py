"""The real evaluators, whose processes chance kills and stops."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from fault_lists import Kind
from lives import Living
from processes import descendants

from engine.core import ArraySpec, Case, Evaluation, Feature, Outputs, Problem
from engine.evaluation import EvaluatorPool
from engine.evaluation.cascade import StagePool

_LATE = 0.2  # seconds for which a process is stopped


def _cases() -> Sequence[Case]:
    return [Case(name="one", args=(0.5,), outputs={"value": ArraySpec(shape=())})]


def _score(outputs: Sequence[Outputs]) -> dict[str, float]:
    return {"score": float(outputs[0]["value"]) / 2**32}


def numbers() -> Problem:
    """Return a problem whose programs return a number."""
    return Problem.of(
        "numbers",
        cases=_cases,
        score=_score,
        initial_program="def f(x):\n    return x\n",
        statement="Do.",
        features=(Feature(name="score", low=0, high=1, bins=8),),
    )


class MortalPool:
    """Evaluators; a fault may kill a process of theirs, or stop it for a while or for ever."""

    def __init__(self, living: Living, pool: EvaluatorPool) -> None:
        self._living = living
        self._pool = pool
        self._rng = random.Random(living.rng.random())

    def submit(self, *, candidate_id: str, program: str, stage: int, order: int) -> None:
        self._living.note_submitted(candidate_id, stage)
        self._pool.submit(candidate_id=candidate_id, program=program, stage=stage, order=order)
        fate = self._living.fate
        if fate.befalls(Kind.CRASH):
            self._send(signal.SIGKILL)
        elif fate.befalls(Kind.NEVER):
            self._send(signal.SIGSTOP)
        elif fate.befalls(Kind.LATE):
            stopped = self._send(signal.SIGSTOP)
            time.sleep(_LATE)
            with suppress(ProcessLookupError):
                os.kill(stopped, signal.SIGCONT)

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        return self._pool.completed(timeout=timeout)

    def _send(self, number: signal.Signals) -> int:
        """Send a signal to one of the evaluators' processes; return which."""
        process = self._rng.choice(descendants(os.getpid()))
        with suppress(ProcessLookupError):
            os.kill(process, number)
        return process


@contextmanager
def mortal_pool(living: Living, ring: Callable[[], object]) -> Iterator[StagePool]:
    """Open evaluators for a session."""
    workers = living.settings.evaluation.workers
    with EvaluatorPool(problem=living.problem, workers=workers) as pool:
        for process in descendants(os.getpid()):
            living.note_process(process)
        pool.announce_to(ring)
        yield MortalPool(living, pool)
