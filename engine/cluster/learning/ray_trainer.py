"""The trainer's process as a Ray actor, and versions of the adapter in Ray's object store."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
from ray import exceptions

from engine.cluster.files import Files
from engine.cluster.learning.remote_trainer import RemoteTrainer
from engine.cluster.learning.shared_learner import SharedLearner
from engine.cluster.learning.trainer_actor import TrainerActor, TrainerSettings
from engine.cluster.on_ray import CPUS, named
from engine.core import Update, UserError
from engine.learning import Job, Step
from engine.learning.steady import StepFailed
from engine.settings import RunSettings

_SAID_AFTER = 60.0  # seconds
_log = logging.getLogger("brood")


class RayTrainer:
    """A trainer somewhere in the cluster; see `TrainerHandle`."""

    def __init__(self, settings: TrainerSettings, *, gpus: int, name: str) -> None:
        """Ask for it, and have it load the model.

        Args:
            settings: see `TrainerActor`.
            gpus: that it is to have.
            name: of the run.
        """
        kind: Any = ray.remote(TrainerActor)
        self._actor: Any = kind.options(
            num_gpus=gpus,
            name=named(f"{name} trainer"),
            num_cpus=CPUS,
            max_restarts=0,  # another one goes on from the last checkpoint
            scheduling_strategy="SPREAD",
        ).remote(settings)
        self._placed = self._actor.__ray_ready__.remote()
        self._loaded = self._actor.load.remote()

    def step(self, job: Job) -> tuple[Step, Files]:
        """See `TrainerHandle.step`."""
        placed, _ = ray.wait([self._placed], timeout=_SAID_AFTER)
        if not placed:
            _log.warning("the trainer waits for a machine with room for it")
        _got(self._loaded, failed=ConnectionError)  # another process may get further
        found: tuple[Step, Files] = _got(self._actor.step.remote(job), failed=StepFailed)
        return found

    def kill(self) -> None:
        """See `TrainerHandle.kill`."""
        ray.kill(self._actor)


def _got(answer: Any, *, failed: type[Exception]) -> Any:
    """Return what the trainer answers.

    Raises:
        ConnectionError: it is dead.
        Exception: ``failed``, where it says that it failed.
    """
    try:
        return ray.get(answer)
    except exceptions.RayTaskError as error:
        raise failed(f"{type(error.cause).__name__}: {error.cause}") from error
    except exceptions.RayError as error:
        raise ConnectionError(str(error).partition("\n")[0]) from error


class RayFiles:
    """Files in Ray's object store, from which each machine fetches them once; see `Stored`.

    They are there as long as the process lives that made this value.
    """

    def __init__(self, files: Files) -> None:
        """Put them there."""
        self._found = ray.put(files)

    def get(self) -> Files:
        """See `Stored.get`."""
        try:
            files: Files = ray.get(self._found)
        except exceptions.RayError as error:
            line = str(error).partition("\n")[0]
            raise UserError(f"a version of the adapter can't be fetched: {line}") from error
        return files


def shared_learner(
    settings: RunSettings,
    folder: Path,
    *,
    recorded: Mapping[int, Sequence[Update]],
    progress: Callable[[], float],
) -> SharedLearner:
    """Return what has the model of a run learn; its trainer begins to start.

    Args:
        settings: of the whole run.
        folder: the run's, whose islands are founded.
        recorded: see `SharedLearner`.
        progress: likewise.

    Raises:
        UserError: the last version's checkpoint is missing.
    """
    gpus = settings.cluster.trainer_gpus
    trained = TrainerSettings(
        model=settings.model,
        learning=settings.learning,
        seed=settings.seed,
        device="cuda" if gpus else "cpu",
        checkpoint=None,
    )
    return SharedLearner(
        settings.learning,
        folder=folder,
        recorded=recorded,
        start=lambda checkpoint: RemoteTrainer(
            lambda files: RayTrainer(
                replace(trained, checkpoint=files), gpus=gpus, name=folder.name
            ),
            checkpoint=checkpoint,
            notify=lambda: None,  # the driver looks by itself
        ),
        store=RayFiles,
        progress=progress,
    )
