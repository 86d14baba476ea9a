"""The engine's evaluators, for a search in another environment.

A `Judge` listens on a Unix socket. A search's evaluation file (``bench.peer_evaluator``) sends a
program and gets metrics, so that every search of a comparison is scored by the same sandbox and
the same code, and an endless program costs each of them its limit and no more. What was judged is
kept, with the time of the verdict. Programs are judged one after the other.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from engine.core import Direction, Evaluation, Problem, Refusal
from engine.evaluation import open_pool
from engine.syntax import read

SOCKET = "judge"
"""Name of the socket, in the folder of the evaluation file."""

_LONGEST = 1 << 24  # bytes of a program


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """A program that a search had evaluated: when the verdict was there (monotonic), and which."""

    at: float
    program: str
    evaluation: Evaluation


class Judge:
    """Evaluates what comes in through ``folder / SOCKET``; a context manager."""

    def __init__(self, *, problem: Problem, folder: Path) -> None:
        """Listen; the evaluator warms up meanwhile."""
        self._problem = problem
        self._address = str(folder / SOCKET)
        self._listener = Listener(self._address, family="AF_UNIX")
        self._pool = open_pool(problem=problem, workers=1)
        self._changed = threading.Condition()
        self._judged: list[Judged] = []
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="judge")
        self._thread.start()

    def judged(self) -> list[Judged]:
        """Return what was judged so far, in order; a search's initial program is the first."""
        with self._changed:
            return list(self._judged)

    def wait(self, count: int, *, seconds: float) -> bool:
        """Wait up to ``seconds`` until ``count`` programs were judged; return whether they were."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._judged) >= count, timeout=seconds)

    def close(self) -> None:
        """Stop listening."""
        self._closed = True
        with Client(self._address, family="AF_UNIX"):  # wakes the thread, which then sees it
            pass
        self._thread.join()
        self._listener.close()
        self._pool.close()

    def _serve(self) -> None:
        while True:
            with self._listener.accept() as connection:
                if self._closed:
                    return
                self._answer(connection)

    def _answer(self, connection: Connection) -> None:
        try:
            program = connection.recv_bytes(_LONGEST).decode()
        except (EOFError, OSError, UnicodeDecodeError):
            return  # a search that was ended while it asked
        self._pool.submit(candidate_id="program", program=program)
        ((_, evaluation),) = self._pool.completed(timeout=None)
        with self._changed:
            first = self._judged[0].evaluation if self._judged else evaluation
            self._judged.append(Judged(at=time.monotonic(), program=program, evaluation=evaluation))
            self._changed.notify_all()
        try:
            connection.send_bytes(json.dumps(metrics(self._problem, evaluation, first)).encode())
        except OSError:
            return  # a search that was ended meanwhile

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def metrics(problem: Problem, evaluation: Evaluation, first: Evaluation) -> dict[str, Any]:
    """Return a verdict in the form that OpenEvolve and SkyDiscover take.

    Both maximise ``combined_score``, and 0 stands for a failure; of a problem that is minimised it
    is the initial program's score (``first``) divided by the program's.
    """
    if evaluation.score is None:
        return {"combined_score": 0.0, "error": evaluation.message}
    score = evaluation.score
    if problem.direction is Direction.MINIMISE and first.score is not None:
        score = first.score / score
    others = {name: value for name, value in evaluation.metrics.items() if name != "score"}
    return {**others, "combined_score": score}


def refusals(judged: Sequence[Judged]) -> dict[Refusal, int]:
    """Count the programs that this engine would not have evaluated, by the reason.

    Its rules apply, in its order: a program has to parse, to differ from all before it, the first
    one included, and to read no undefined name. That it is the same as its parent is counted as a
    repetition, for the parent is not known here.
    """
    counts: dict[Refusal, int] = {}
    seen: set[str] = set()
    for each in judged:
        program = read(each.program)
        if program is None:
            reason = Refusal.UNPARSED
        elif program.key in seen:
            reason = Refusal.DUPLICATE
        elif seen and program.undefined:
            reason = Refusal.UNDEFINED
        else:
            seen.add(program.key)
            continue
        counts[reason] = counts.get(reason, 0) + 1
    return counts
