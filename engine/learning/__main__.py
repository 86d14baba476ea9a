"""The trainer's process, which ``process.py`` starts."""

import contextlib
import ctypes
import dataclasses
import os
import pickle
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from engine.learning.process import Done, Job, Setup
from engine.learning.step import Step

if TYPE_CHECKING:
    from engine.learning.trainer import Trainer

_PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def main() -> None:
    """Train until standard input ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed by mistake is no message
    try:
        trainer = _trainer()
        with contextlib.suppress(EOFError):
            while True:
                pickle.dump(_do(trainer, pickle.load(sys.stdin.buffer)), target)
                target.flush()
    except Exception as error:  # told to the run, which starts this process again
        pickle.dump(RuntimeError(f"{type(error).__name__}: {error}"), target)
        target.flush()


def _trainer() -> "Trainer":
    import torch  # takes seconds, in which the run loads its model, or dies

    from engine.learning.trainer import Trainer

    setup: Setup
    checkpoint: Path | None
    setup, checkpoint = pickle.load(sys.stdin.buffer)
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


def _do(trainer: "Trainer", job: Job) -> Step:
    began = time.monotonic()
    step = trainer.step(job.groups, version=job.version, progress=job.progress)
    if Done(job=job, step=step).stands:
        partial = job.folder.with_name(f".{job.folder.name}")
        for folder in (partial, job.folder):  # of a session that died before it was recorded
            shutil.rmtree(folder, ignore_errors=True)
        partial.mkdir(parents=True)
        trainer.save(partial)
        partial.rename(job.folder)
    return dataclasses.replace(step, seconds=time.monotonic() - began)


main()
