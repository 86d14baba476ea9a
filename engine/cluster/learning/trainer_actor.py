"""The trainer: the process, somewhere in the cluster, that trains the model of a run."""

import os
import secrets
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cluster.files import Files, all_files, put_files
from engine.inference import check_trainer_fits, find_weights, prepare
from engine.learning import Job, Setup, Step, lower_priority, make_step, trainer_of
from engine.scratch import make_scratch, remove_stale
from engine.session import log_to_terminal
from engine.settings import LearningSettings, ModelSettings

if TYPE_CHECKING:
    from engine.learning.trainer import Trainer

_SCRATCH = "brood-trainer-"  # begins the name of a trainer's folder for temporary files


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainerSettings:
    """What a trainer trains, and with what.

    Attributes:
        model: whose weights are on the trainer's machine too.
        learning: the run's.
        seed: the run's.
        device: ``cpu`` or ``cuda``.
        checkpoint: to go on from; None to begin.
    """

    model: ModelSettings
    learning: LearningSettings
    seed: int
    device: str
    checkpoint: Files | None


class TrainerActor:
    """See the module. Its methods are called one at a time."""

    def __init__(self, settings: TrainerSettings) -> None:
        """Load nothing yet."""
        log_to_terminal()
        self._settings = settings
        temporary = Path(tempfile.gettempdir())
        remove_stale(temporary, _SCRATCH)  # of trainers that were killed, as each is in the end
        self._scratch, _ = make_scratch(temporary, f"{_SCRATCH}{secrets.token_hex(8)}")
        self._trainer: Trainer | None = None

    def load(self) -> None:
        """Load the model; once, before the first step.

        Raises:
            UserError: it can't be trained here, with the memory that it may have, or the checkpoint
                can't be read.
        """
        settings, folder = self._settings, None
        prepare(threads=None, kv_cache_gb=settings.model.kv_cache_gb)
        # Ray has imported tqdm: too late for what `prepare` says to that.
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
        weights = find_weights(settings.model)
        if settings.device == "cpu":
            lower_priority(0)  # a worker's model may need the cores
        else:
            check_trainer_fits(settings.learning, weights)
        if settings.checkpoint is not None:
            folder = self._scratch / "checkpoint"
            put_files(folder, settings.checkpoint)
        dtype = "bfloat16" if settings.model.dtype == "auto" else settings.model.dtype
        setup = Setup(
            weights=weights,
            settings=settings.learning,
            seed=settings.seed,
            device=settings.device,
            dtype=dtype if settings.device == "cpu" else "bfloat16",
        )
        self._trainer = trainer_of(setup, folder)
        if folder is not None:
            shutil.rmtree(folder)

    def step(self, job: Job) -> tuple[Step, Files]:
        """Make a step; return it with its checkpoint, which is empty unless the step stands."""
        assert self._trainer is not None  # it was loaded
        folder = self._scratch / job.folder.name
        step = make_step(self._trainer, replace(job, folder=folder))
        files = all_files(folder) if folder.is_dir() else {}
        shutil.rmtree(folder, ignore_errors=True)
        return step, files
