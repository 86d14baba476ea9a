"""The trainer of a run on a cluster, as the driver has it: its process may be anywhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from engine.cluster.files import Files, all_files, put_files
from engine.learning import Ask, Job, SteadyTrainer, Step, new_checkpoint


class TutorHandle(Protocol):
    """A `Tutor` somewhere, which may die."""

    def step(self, job: Job) -> tuple[Step, Files]:
        """See `Tutor.step`.

        Raises:
            ConnectionError: it is dead, or can't train.
        """

    def kill(self) -> None:
        """End its process; idempotent, from any thread."""


class RemoteTrainer(SteadyTrainer):
    """Has tutors make the steps, one after the death of the other; keeps their checkpoints here."""

    def __init__(
        self,
        ask_for: Callable[[Files | None], TutorHandle],
        *,
        checkpoint: Path | None,
        notify: Callable[[], object],
    ) -> None:
        """Begin to start a tutor.

        Args:
            ask_for: asks for one that goes on from a checkpoint.
            checkpoint: see `SteadyTrainer`.
            notify: likewise.
        """
        self._ask_for = ask_for
        self._tutor: TutorHandle | None = None
        super().__init__(checkpoint=checkpoint, notify=notify)

    def _kill(self) -> None:
        if self._tutor is not None:
            self._tutor.kill()

    @contextmanager
    def _started(self, checkpoint: Path | None) -> Iterator[Ask]:
        self._tutor = tutor = self._ask_for(None if checkpoint is None else all_files(checkpoint))
        try:
            if self._closing.is_set():  # between its start and its being known
                tutor.kill()
            yield partial(_step, tutor)
        finally:
            tutor.kill()


def _step(tutor: TutorHandle, job: Job) -> Step:
    step, files = tutor.step(job)
    if files:
        with new_checkpoint(job.folder) as folder:
            put_files(folder, files)
    return step
