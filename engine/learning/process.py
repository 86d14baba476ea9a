"""The trainer's process: steps of training go in, adapters on disk come out.

The trainer has a process of its own, because a thread that runs Python holds the GIL, and each step
of the model would wait for it. On a CPU the process runs on the evaluators' cores at a low
priority: it uses what they leave idle, and a tenth of a core that is never idle, so that learning
goes on whatever else the machine does. On a GPU it has a context of its own, within
``learning.memory_gb``.

``python -m engine.learning`` is that process. Standard input brings a `Setup` with the checkpoint
to go on from, and then one `Job` after the other, each as a pickle; standard output takes a `Step`
for each, or the exception that ends the process.

Covers: starting the process, handing it jobs, taking results. A process that dies is started again
from the last checkpoint. Does not cover what a step does (``trainer.py``), or which groups it gets
(``learner.py``).
"""

import contextlib
import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Self

from engine.learning.group import Group
from engine.learning.step import Step, plain_step
from engine.settings import LearningSettings

_PRIORITY = 10  # a niceness; beside a process of niceness 0, Linux gives it a tenth of a core
_MOST_DEATHS = 3  # in a row, without a step between them
_log = logging.getLogger("brood")


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """What a trainer is made with.

    Attributes:
        weights: folder of the model, in Hugging Face's layout.
        settings: the run's.
        seed: the run's.
        device: ``cpu`` or ``cuda``.
        dtype: the format of the model's numbers, as torch names it.
    """

    weights: Path
    settings: LearningSettings
    seed: int
    device: str
    dtype: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One step of training.

    Attributes:
        number: of the step.
        version: of the adapter that it starts from.
        groups: to learn from.
        progress: share of the budget that is spent.
        folder: where the checkpoint is to stand.
    """

    number: int
    version: int
    groups: tuple[Group, ...]
    progress: float
    folder: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """A step is over. If it stands, the job's folder holds its checkpoint."""

    job: Job
    step: Step

    @property
    def stands(self) -> bool:
        """Whether there is a new adapter."""
        return self.step.skipped is None and self.step.rolled_back is None

    @property
    def version(self) -> int:
        """Of the adapter that the trainer holds afterwards."""
        if self.stands:
            return self.job.number
        return self.job.version if self.step.version is None else self.step.version


class TrainerProcess:
    """The process, and a thread that talks with it; a context manager."""

    def __init__(
        self,
        setup: Setup,
        *,
        cores: Collection[int],
        checkpoint: Path | None,
        notify: Callable[[], object],
    ) -> None:
        """Begin to start it, which takes seconds; `load` lets it go on to load the model.

        Args:
            setup: what the trainer is made with.
            cores: that the process may use.
            checkpoint: folder to go on from; None to begin.
            notify: called, in a thread of this object, when `completed` has something new.
        """
        self._setup = setup
        self._cores = cores
        self._checkpoint = checkpoint
        self._notify = notify
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._done: SimpleQueue[Done] = SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._closing = threading.Event()
        self._may_load = threading.Event()
        self.is_busy = False
        self.is_lost = False
        self._thread = threading.Thread(target=self._serve, name="trainer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def load(self) -> None:
        """Have the model loaded.

        Call it when the sampler's model is loaded: vLLM reckons with a GPU's memory as it finds it.
        """
        self._may_load.set()

    def submit(self, job: Job) -> None:
        """Have a step made; only if the process is neither busy nor lost."""
        self.is_busy = True
        self._jobs.put(job)

    def completed(self) -> Done | None:
        """Return the step that is over since the last time, if there is one.

        The step in which the process was lost is one that was skipped.
        """
        if self._done.empty():
            return None
        self.is_busy = False
        return self._done.get()

    def close(self) -> None:
        """End the process, in the middle of a step if need be; idempotent."""
        self._closing.set()
        self._may_load.set()
        self._jobs.put(None)
        process = self._process
        if process is not None:
            process.kill()
        self._thread.join()

    def _serve(self) -> None:
        """Give the process one job after the other until there is an end."""
        deaths = 0
        job: Job | None = None
        while deaths < _MOST_DEATHS:
            try:
                with self._started() as process:
                    while job := job or self._jobs.get():
                        done = _ask(process, job)
                        folder = job.folder.with_name(f"{done.version:06}")
                        self._checkpoint = folder if done.version else None
                        job, deaths = None, 0
                        self._done.put(done)
                        self._notify()
                    return
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                if self._closing.is_set():
                    return
                deaths += 1
                _log.warning("the trainer's process died (%s)%s", *_what_now(error, deaths))
        self.is_lost = True
        if job is not None:
            reason = f"the trainer's process died {deaths} times in a row"
            self._done.put(Done(job=job, step=_lost(job, reason)))
            self._notify()

    @contextlib.contextmanager
    def _started(self) -> Iterator["subprocess.Popen[bytes]"]:
        threads = str(len(set(self._cores)))
        self._process = process = subprocess.Popen(
            [sys.executable, "-P", "-s", "-m", "engine.learning"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C is for the run, which ends this process
            env={**os.environ, "OMP_NUM_THREADS": threads},
        )
        try:
            os.sched_setaffinity(process.pid, self._cores)
            os.setpriority(os.PRIO_PROCESS, process.pid, _PRIORITY)
            self._may_load.wait()
            _send(process, (self._setup, self._checkpoint))
            if self._closing.is_set():  # between the start of the process and its being known
                process.kill()
            yield process
        finally:
            process.kill()
            process.communicate()


def _what_now(error: Exception, deaths: int) -> tuple[object, str]:
    reason = " ".join(str(error).split()) or type(error).__name__
    if deaths < _MOST_DEATHS:
        return reason, "; it is started again from its last checkpoint"
    return reason, f" {deaths} times in a row; the run goes on without learning"


def _lost(job: Job, reason: str) -> Step:
    return replace(plain_step(job.groups), version=job.version, skipped=reason)


def _send(process: "subprocess.Popen[bytes]", message: object) -> None:
    assert process.stdin is not None
    process.stdin.write(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
    process.stdin.flush()


def _ask(process: "subprocess.Popen[bytes]", job: Job) -> Done:
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # it may have ended before, and have said why
        _send(process, job)
    answer = pickle.load(process.stdout)
    if isinstance(answer, Exception):
        raise EOFError(str(answer)) from answer
    return Done(job=job, step=answer)
