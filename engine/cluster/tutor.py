"""The tutor: the process, somewhere in the cluster, that trains the model of a run."""

import os
import secrets
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cluster.files import Files, all_files, put_files
from engine.inference import find_weights, prepare
from engine.learning import PRIORITY, Job, Setup, Step, make_step, trainer_of
from engine.scratch import make_scratch, remove_stale
from engine.session import log_to_terminal
from engine.settings import LearningSettings, ModelSettings

if TYPE_CHECKING:
    from engine.learning.trainer import Trainer

_SCRATCH = "brood-tutor-"  # begins the name of a tutor's folder for temporary files


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """What a tutor trains, and with what.

    Attributes:
        model: whose weights are on the tutor's machine too.
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


class Tutor:
    """See the module. Its methods are called one at a time."""

    def __init__(self, course: Course) -> None:
        """Load nothing yet."""
        log_to_terminal()
        self._course = course
        temporary = Path(tempfile.gettempdir())
        remove_stale(temporary, _SCRATCH)  # of tutors that were killed, as each is in the end
        self._scratch, _ = make_scratch(temporary, f"{_SCRATCH}{secrets.token_hex(8)}")
        self._trainer: Trainer | None = None

    def load(self) -> None:
        """Load the model; once, before the first step.

        Raises:
            UserError: it can't be trained here, or the checkpoint can't be read.
        """
        course, folder = self._course, None
        prepare(threads=None, kv_cache_gb=course.model.kv_cache_gb)
        # Ray has imported tqdm: too late for what `prepare` says to that.
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
        if course.device == "cpu":
            os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)  # a worker's model may need the cores
        if course.checkpoint is not None:
            folder = self._scratch / "checkpoint"
            put_files(folder, course.checkpoint)
        dtype = "bfloat16" if course.model.dtype == "auto" else course.model.dtype
        setup = Setup(
            weights=find_weights(course.model),
            settings=course.learning,
            seed=course.seed,
            device=course.device,
            dtype=dtype if course.device == "cpu" else "bfloat16",
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
