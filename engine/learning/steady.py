"""A trainer in a process of its own, which is started again when it dies.

Covers: handing it jobs, taking results, deaths. A job whose step raises is skipped, and another
process goes on from the last checkpoint: the error may have left the adapter in the middle of a
step, and the same groups would raise again. For a process that dies without a word another one
makes the same step. Does not cover where the process is (``process.py`` for one on this machine),
what a step does (``trainer.py``), or which groups it gets (``steps.py``).
"""

import logging
import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Self

from engine.learning.job import Done, Job
from engine.learning.step import Step, plain_step

_MOST_DEATHS = 3  # in a row, without a step between them
_log = logging.getLogger("brood")


class StepFailed(Exception):
    """A trainer could not make a step, and may have been left in the middle of it."""


Ask = Callable[[Job], Step]
"""Has a trainer's process make a step. Raises `StepFailed` where that failed, and `OSError`,
`EOFError` or `pickle.UnpicklingError` where the process has died."""


class SteadyTrainer(ABC):
    """The process, and a thread that talks with it; a context manager."""

    def __init__(self, *, checkpoint: Path | None, notify: Callable[[], object]) -> None:
        """Begin to start it.

        Args:
            checkpoint: folder to go on from; None to begin.
            notify: called, in a thread of this object, when `completed` has something new.
        """
        self._checkpoint = checkpoint
        self._notify = notify
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._done: SimpleQueue[Done] = SimpleQueue()
        self._closing = threading.Event()
        self.is_busy = False
        self.is_lost = False
        self._thread = threading.Thread(target=self._serve, name="trainer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

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
        self._jobs.put(None)
        self._kill()
        self._thread.join()

    @abstractmethod
    def _started(self, checkpoint: Path | None) -> AbstractContextManager[Ask]:
        """Start a process that goes on from a checkpoint, and end it with the block."""

    @abstractmethod
    def _kill(self) -> None:
        """End the process that there is, if there is one; from any thread, idempotent."""

    def _serve(self) -> None:
        """Give the process one job after the other until there is an end."""
        deaths = 0
        job: Job | None = None
        while deaths < _MOST_DEATHS:
            try:
                with self._started(self._checkpoint) as ask:
                    while job := job or self._jobs.get():
                        done = Done(job=job, step=ask(job))
                        folder = job.folder.with_name(f"{done.version:06}")
                        self._checkpoint = folder if done.version else None
                        job, deaths = None, 0
                        self._done.put(done)
                        self._notify()
                    return
            except StepFailed as error:
                assert job is not None  # nothing else asks for a step
                deaths += 1
                _log.warning("a step of training failed (%s)%s", *_what_now(error, deaths))
                self.is_lost = deaths == _MOST_DEATHS
                self._skip(job, f"the step failed: {_line(error)}")
                job = None
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                if self._closing.is_set():
                    return
                deaths += 1
                _log.warning("the trainer's process died (%s)%s", *_what_now(error, deaths))
        self.is_lost = True
        if job is not None:
            self._skip(job, f"the trainer's process died {deaths} times in a row")

    def _skip(self, job: Job, reason: str) -> None:
        """Hand a job back whose step was not made."""
        self._done.put(Done(job=job, step=_lost(job, reason)))
        self._notify()


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _what_now(error: Exception, deaths: int) -> tuple[str, str]:
    reason = _line(error)
    if deaths < _MOST_DEATHS:
        return reason, "; it is started again from its last checkpoint"
    return reason, f" {deaths} times in a row; the run goes on without learning"


def _lost(job: Job, reason: str) -> Step:
    return replace(plain_step(job.groups), version=job.version, skipped=reason)
