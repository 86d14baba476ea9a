"""The trainer of a run on a cluster, as the driver has it: its process may be anywhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from engine.cluster.files import Files, all_files, put_files
from engine.learning import Ask, Job, SteadyTrainer, Step, new_checkpoint


class TrainerHandle(Protocol):
    """A `TrainerActor` somewhere, which may die."""

    def step(self, job: Job) -> tuple[Step, Files]:
        """See `TrainerActor.step`.

        Raises:
            ConnectionError: it is dead, or can't load the model.
            StepFailed: the step failed, and may have left the trainer in the middle of it.
        """

    def kill(self) -> None:
        """End its process; idempotent, from any thread."""


class RemoteTrainer(SteadyTrainer):
    """Has one process after the other's death make the steps; keeps their checkpoints here."""

    def __init__(
        self,
        ask_for: Callable[[Files | None], TrainerHandle],
        *,
        checkpoint: Path | None,
        notify: Callable[[], object],
    ) -> None:
        """Begin to start a process.

        Args:
            ask_for: asks for one that goes on from a checkpoint.
            checkpoint: see `SteadyTrainer`.
            notify: likewise.
        """
        self._ask_for = ask_for
        self._process: TrainerHandle | None = None
        super().__init__(checkpoint=checkpoint, notify=notify)

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    @contextmanager
    def _started(self, checkpoint: Path | None) -> Iterator[Ask]:
        self._process = process = self._ask_for(
            None if checkpoint is None else all_files(checkpoint)
        )
        try:
            if self._closing.is_set():  # between its start and its being known
                process.kill()
            yield partial(_step, process)
        finally:
            process.kill()


def _step(process: TrainerHandle, job: Job) -> Step:
    step, files = process.step(job)
    if files:
        with new_checkpoint(job.folder) as folder:
            put_files(folder, files)
    return step
