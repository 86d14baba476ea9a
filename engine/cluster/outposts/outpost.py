"""An outpost: a process with evaluators and no model, for machines without a GPU."""

import os
import tempfile
import threading
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path

from engine import config
from engine.cluster.outposts.spread import Submission
from engine.cluster.same_problem import problem_here
from engine.core import Evaluation
from engine.evaluation import Evaluators, open_pool
from engine.session import log_to_terminal


def cores_of(number: int, *, of: int, cores: Sequence[int]) -> Sequence[int]:
    """Return the cores of an outpost, as if all were on one machine; an evaluator runs on each.

    Args:
        number: its own, from 0 on.
        of: how many outposts there are to be.
        cores: of the machine.
    """
    among = max(1, min(of, len(cores)))
    return cores[number % among :: among]


class Outpost:
    """Programs in, verdicts out. Its methods may be called from any thread."""

    def __init__(self, settings: str, *, fingerprint: str) -> None:
        """Start nothing yet.

        Args:
            settings: of the whole run, as YAML.
            fingerprint: of the run's problem, which has to be the same here.
        """
        log_to_terminal()
        with tempfile.TemporaryDirectory(prefix="brood-outpost-") as folder:
            path = Path(folder) / "settings.yaml"
            path.write_text(settings)
            self._settings = config.load(path)
        self._resources = ExitStack()
        self._fingerprint = fingerprint
        self._pool: Evaluators | None = None
        self._came = threading.Event()  # a program

    def start(self, cores: Collection[int]) -> int:
        """Start an evaluator on each core; return how many they are.

        Raises:
            UserError: the problem can't be read here or is not the driver's, or a wall is missing
                that is asked for.
        """
        os.sched_setaffinity(0, cores)
        problem = problem_here(self._settings, fingerprint=self._fingerprint)
        pool = self._resources.enter_context(
            open_pool(problem=problem, workers=len(cores), cores=sorted(cores))
        )
        pool.check_walls(strict=self._settings.evaluation.strict)
        self._pool = pool
        return len(cores)

    def submit(self, programs: Sequence[Submission]) -> None:
        """Queue programs."""
        assert self._pool is not None  # it was started
        for each in programs:
            self._pool.submit(
                candidate_id=each.name, program=each.program, stage=each.stage, order=each.order
            )
        self._came.set()

    def take(self, seconds: float) -> Sequence[tuple[str, Evaluation]]:
        """Return the verdicts since the last time; wait up to ``seconds`` for the first."""
        assert self._pool is not None  # it was started
        if not self._pool.in_flight:
            self._came.wait(seconds)
        self._came.clear()
        return self._pool.completed(timeout=seconds)

    def close(self) -> None:
        """End the evaluators."""
        self._resources.close()
