"""The lane of judges: a box server, and the memory in which it leaves what was seen of a run."""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path

from engine.core import Evaluation, Judge, JudgeKind, Problem
from engine.evaluation._native import Observation, Outcome
from engine.evaluation.attendant import RESULT_BYTES, Seen
from engine.evaluation.box import Setup
from engine.evaluation.judged import judged
from engine.evaluation.lane import Lane
from engine.evaluation.server import Server
from engine.evaluation.warmth import WARM_MODULES
from engine.evaluation.wire import ResultMemory

_REFEREE = ("engine.judge.candidate", "engine.judge.referee")
_NOTHING = Seen(stdout="", stderr="", program="", candidate=None)


class JudgeLane(Lane):
    """See `Lane`."""

    def __init__(
        self,
        problem: Problem,
        judge: Judge,
        folder: Path,
        deliver: Callable[[int, Evaluation], None],
        fail: Callable[[str], None],
    ) -> None:
        """Make a lane without a box server.

        Args:
            problem: what its programs are for.
            judge: the problem's.
            folder: where its servers run, and beside which their log lies.
            deliver: takes a task's ticket and the verdict.
            fail: told why there is no process to be had.
        """
        super().__init__(deliver, fail)
        self._problem = problem
        self._judge = judge
        self._folder = folder
        self._result = ResultMemory(RESULT_BYTES)
        is_python = judge.kind is not JudgeKind.COMMAND
        self._setup = Setup(
            parent=os.getpid(),
            seconds=problem.limits.seconds,
            memory_bytes=problem.limits.memory_bytes,
            modules=[*WARM_MODULES, *problem.modules, *_REFEREE] if is_python else [],
            judge=dataclasses.asdict(judge),
            folder=str(problem.folder.resolve()),
            result=self._result.fd,
            scratch=str(folder / "scratch"),
        )

    def close(self) -> None:
        """See `Lane.close`."""
        self.drop()
        self._result.close()

    def _start(self) -> Server:
        return Server(
            "engine.evaluation.box", self._setup, self._folder, descriptors=[self._result.fd]
        )

    def _begin(self, server: Server) -> None:
        pass  # it opens its first box by itself

    def _verdict(self, stage: int, observation: Observation) -> Evaluation:
        # A server that did not answer in time has left what it saw of an earlier program.
        answered = observation.outcome is Outcome.ANSWERED
        seen = Seen(**json.loads(self._result.read())) if answered else _NOTHING
        return judged(self._problem, self._judge, observation, seen)
