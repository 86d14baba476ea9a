"""The lane of programs: a zygote, and the memory in which it leaves their results."""

import itertools
import math
import os
import struct
from collections.abc import Callable
from pathlib import Path

from engine.core import Evaluation, Problem
from engine.evaluation._native import Observation
from engine.evaluation.contract import packed_size
from engine.evaluation.lane import Lane
from engine.evaluation.server import Server
from engine.evaluation.verdict import groups, judge
from engine.evaluation.warmth import Warmth
from engine.evaluation.wire import RAISED_BYTES, ResultMemory
from engine.evaluation.zygote import Setup

_REQUEST = struct.Struct("@II")  # as in native/protocol.hpp


class ZygoteLane(Lane):
    """See `Lane`. A zygote that was just started goes on to rehearse; the first program waits."""

    def __init__(
        self,
        problem: Problem,
        inputs: list[list[int]],
        folder: Path,
        warmth: Warmth,
        deliver: Callable[[int, Evaluation], None],
        fail: Callable[[str], None],
        *,
        seconds: float,
        idle: bool = False,
    ) -> None:
        """Make a lane without a zygote.

        Args:
            problem: what its programs are for.
            inputs: for each stage, a descriptor for each process with the cases that it runs.
            folder: where its zygotes run, and beside which their log lies.
            warmth: what they make ready.
            deliver: takes a task's ticket and the verdict.
            fail: told why there is no process to be had.
            seconds: wall seconds for a program's evaluation.
            idle: whether programs run only when nothing else wants their core. Then the problem's
                seconds, rounded up, are those of the core, and each process of a program has them.
        """
        super().__init__(deliver, fail)
        self._problem = problem
        self._folder = folder
        every = [group for stage in problem.stages for group in groups(problem, stage)]
        most_bytes = 1 + max(RAISED_BYTES, *(sum(map(packed_size, group)) for group in every))
        self._results = [ResultMemory(most_bytes) for _ in range(max(map(len, inputs)))]
        most = problem.limits.seconds
        self._setup = Setup(
            parent=os.getpid(),
            entry_point=problem.entry_point,
            inputs=inputs,
            results=[each.fd for each in self._results],
            isolate_cases=problem.isolate_cases,
            seconds=seconds,
            cpu_seconds=math.ceil(most) + (0 if idle else 1),
            memory_bytes=problem.limits.memory_bytes,
            modules=list(warmth.modules),
            idle=idle,
            lazy=list(warmth.lazy),
            hidden=[str(problem.folder.resolve())],
        )
        rehearsal = warmth.rehearsal.encode(errors="surrogatepass")
        self._rehearsal = _REQUEST.pack(len(problem.stages) - 1, len(rehearsal)) + rehearsal

    def close(self) -> None:
        """See `Lane.close`."""
        self.drop()
        for result in self._results:
            result.close()

    def _start(self) -> Server:
        descriptors = [*self._setup.results, *itertools.chain(*self._setup.inputs)]
        return Server(
            "engine.evaluation.zygote", self._setup, self._folder, descriptors=descriptors
        )

    def _begin(self, server: Server) -> None:
        server.socket.sendall(self._rehearsal)

    def _verdict(self, stage: int, observation: Observation) -> Evaluation:
        results = [each.read() for each in self._results[: len(observation.seconds)]]
        return judge(
            *(self._problem, self._problem.stages[stage], observation, results),
            idle=self._setup.idle,
        )
