"""The trainer's process, which ``process.py`` starts."""

import contextlib
import ctypes
import os
import pickle
import signal
import sys

from engine.learning.steady import StepFailed
from engine.learning.step import Step
from engine.learning.work import make_step, trainer_of

_PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def main() -> None:
    """Train until standard input ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed by mistake is no message
    try:
        import torch  # noqa: F401  (takes seconds, in which the run loads its model, or dies)

        trainer = trainer_of(*pickle.load(sys.stdin.buffer))
        with contextlib.suppress(EOFError):
            while True:
                job = pickle.load(sys.stdin.buffer)
                try:
                    answer: Step | StepFailed = make_step(trainer, job)
                except Exception as error:  # told to the run, which has another process go on
                    answer = StepFailed(f"{type(error).__name__}: {error}")
                pickle.dump(answer, target)
                target.flush()
                if isinstance(answer, StepFailed):
                    return
    except Exception as error:  # told to the run, which starts this process again
        pickle.dump(RuntimeError(f"{type(error).__name__}: {error}"), target)
        target.flush()


main()
