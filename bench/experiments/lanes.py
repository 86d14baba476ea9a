"""Having runs made, several at a time, each on cores of its own.

A lane is some cores and one process on them (``lane``). Lanes take the runs in their order. A run
that can't share what the lane's process has loaded gets a new one; so does the one after a process
that died, and the run that it was at has no result.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.experiments.results import Result
from bench.experiments.table import Job
from engine.core import UserError
from engine.settings import RunSettings
from engine.sweep.shared import shared

Made = Callable[[Job, Result], object]


def core_groups(cores: Sequence[int], *, each: int) -> list[list[int]]:
    """Return the cores in groups of ``each``, as many as there can be.

    Raises:
        UserError: there is none. On fewer cores than it is said to have, a run would do less.
    """
    count = len(cores) // each
    if not count:
        raise UserError(f"a run needs {each} cores, and this process has {len(cores)}")
    return [list(cores[number * each : (number + 1) * each]) for number in range(count)]


def make(jobs: Sequence[Job], *, out: Path, cores: Sequence[int], made: Made) -> None:
    """Make the runs of all jobs.

    Args:
        jobs: in their order, all with as many cores.
        out: folder of the runs.
        cores: that they may have.
        made: called with each job and its answer, one at a time. An answer with ``error`` says why
            there are no figures.

    Raises:
        UserError: an override of one is wrong, or a run needs more cores.
        Exception: what ``made`` raised, or the start of a process; it has ended all lanes.
    """
    # Here and not in the threads: Hydra, which resolves them, is one for the whole process.
    queue = [(job, job.settings(out)) for job in jobs]
    lock, stopped = threading.Lock(), threading.Event()
    each = jobs[0].cores if jobs else 1
    lanes = [Lane(out=out, cores=group) for group in core_groups(sorted(cores), each=each)]
    errors: list[Exception] = []

    def stop() -> None:
        stopped.set()
        for lane in lanes:
            lane.end()

    def take(lane: Lane) -> None:
        while True:
            with lock:
                if stopped.is_set() or not queue:
                    return
                job, settings = queue.pop(0)
            answer = lane.made(job, settings)
            with lock:
                if stopped.is_set():  # so this is no answer but the end of its process
                    return
                made(job, answer)

    def work(lane: Lane) -> None:
        try:
            take(lane)
        except Exception as error:  # raised again below: a thread would only print it
            errors.append(error)
            stop()
        finally:
            lane.close()

    threads = [threading.Thread(target=work, args=[lane]) for lane in lanes]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        stop()
    if errors:
        raise errors[0]


class Lane:
    """Some cores, and the process that makes runs on them."""

    def __init__(self, *, out: Path, cores: Sequence[int]) -> None:
        """Begin without a process."""
        self._out, self._cores = out, cores
        self._lock, self._has_ended = threading.Lock(), False
        self._process: subprocess.Popen[str] | None = None
        self._loaded: str | None = None  # what its runs share; None for nothing yet

    def made(self, job: Job, settings: RunSettings) -> Result:
        """Have a run made; return its figures, or the ``error`` that kept it from them."""
        wanted, asks = shared(settings), settings.model.kind != "mutation"
        # Mutations need nothing that is loaded, and load nothing.
        if wanted is None or (asks and self._loaded not in (None, wanted)):
            self.close()
        process = self._process or self._start()
        if process is None:
            return {"error": "it was ended before its run began"}
        if asks:
            self._loaded = wanted
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(job.key) + "\n")
            process.stdin.flush()
            answer: str = self._answers.readline()
        except BrokenPipeError:
            answer = ""
        if not answer or wanted is None:
            self.close()
        result: Result = {"error": f"its process ended with {process.returncode}"}
        return json.loads(answer) if answer else result

    def _start(self) -> subprocess.Popen[str] | None:
        """Start the process; None after the lane's end, which would not see it any more."""
        with self._lock:
            if self._has_ended:
                return None
            reading, writing = os.pipe()
            self._answers, self._loaded = os.fdopen(reading), None
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "bench.experiments.lane", str(self._out), str(writing)],
                    stdin=subprocess.PIPE,
                    pass_fds=[writing],
                    text=True,
                    preexec_fn=lambda: os.sched_setaffinity(0, self._cores),
                )
            finally:
                os.close(writing)
            return self._process

    def close(self) -> None:
        """Let the process end, which is at no run; idempotent."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.wait()

    def end(self) -> None:
        """End the process and the run that it is at, for good; from any thread, idempotent."""
        with self._lock:
            self._has_ended, process = True, self._process
        if process is not None and process.poll() is None:
            process.terminate()
