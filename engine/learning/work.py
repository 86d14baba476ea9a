"""What a trainer's process does, wherever it is: it makes a trainer, and steps with it."""

import dataclasses
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engine.durable import make_folders, put_in_place
from engine.learning.job import Done, Job, Setup
from engine.learning.step import Step

if TYPE_CHECKING:
    from engine.learning.trainer import Trainer


def trainer_of(setup: Setup, checkpoint: Path | None) -> "Trainer":
    """Return a trainer that goes on from a checkpoint; None to begin.

    Raises:
        UserError: the model can't be trained, or the checkpoint can't be read.
    """
    import torch  # takes seconds, and nobody else needs it

    from engine.learning.trainer import Trainer

    trainer = Trainer(
        weights=setup.weights,
        settings=setup.settings,
        seed=setup.seed,
        device=setup.device,
        dtype=getattr(torch, setup.dtype),
    )
    if checkpoint is not None:
        trainer.load(checkpoint)
    return trainer


def make_step(trainer: "Trainer", job: Job) -> Step:
    """Make a step; its checkpoint stands in the job's folder if the step does."""
    began = time.monotonic()
    step = trainer.step(
        job.groups,
        version=job.version,
        progress=job.progress,
        kept=job.kept,
        variety=job.variety,
    )
    if Done(job=job, step=step).stands:
        with new_checkpoint(job.folder) as partial:
            trainer.save(partial)
    return dataclasses.replace(step, seconds=time.monotonic() - began)


@contextmanager
def new_checkpoint(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that stands at ``folder``, on disk, once the block has ended well.

    If it ends otherwise, nothing is left of it. What a session that died before it was recorded
    left there is removed.
    """
    partial = folder.with_name(f".{folder.name}")
    for each in (partial, folder):
        shutil.rmtree(each, ignore_errors=True)
    make_folders(folder.parent)
    partial.mkdir()
    try:
        yield partial
        put_in_place(partial, folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
