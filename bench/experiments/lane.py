"""A process that makes runs, one after the other; `lanes` starts it.

Its arguments are the folder of the runs and the number of a descriptor. Each line of its input is a
job, each line that it writes to the descriptor an answer: the run's figures, or the ``error`` that
kept it from them. The model is loaded once, and its prefix cache is empty when a run begins. A run
whose folder is there was cut off, and is made anew.
"""

import ctypes
import json
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from bench.experiments.results import Result, commit, figures, is_evaluation, machine
from bench.experiments.table import Job
from engine import Run
from engine.core import UserError
from engine.interrupt import terminable
from engine.report.analysis import read_runs
from engine.store import RunHistory
from engine.sweep.shared import SharedModel

_PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def main(out: Path, pipe: int) -> None:
    """Make the runs of all jobs, until the input ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this ends it
    with terminable(), closing(SharedModel()) as model:
        for answer in answers(sys.stdin, out=out, model=model):
            os.write(pipe, (json.dumps(answer, allow_nan=False) + "\n").encode())


def answers(lines: Iterable[str], *, out: Path, model: SharedModel) -> Iterator[Result]:
    """Yield what is kept of the run of each line's job, or the error that it ended with."""
    running = commit()  # before the first run: another one may be checked out while they go on
    for line in lines:
        found = json.loads(line)
        job = Job(**{**found, "overrides": tuple(found["overrides"])})
        try:
            run = made(job, out=out, model=model)
        except UserError as error:
            yield {**job.key, "error": str(error)}
        else:
            yield {**job.key, **run, "commit": running, "machine": machine()}


def made(job: Job, *, out: Path, model: SharedModel) -> Result:
    """Make a run; return its figures.

    Raises:
        UserError: it can't be made so.
    """
    settings = job.settings(out)
    folder = Path(settings.runs) / job.name
    shutil.rmtree(folder, ignore_errors=True)
    with Run.start(settings, load=model.loader(settings)) as run:
        run.evolve(
            stopped=_stopped(job, lambda: run.history),
            # Else what is at the evaluators would count as an evaluation, and have no score. A run
            # by seconds is over at its seconds.
            drains=job.budget == "evaluations",
        )
    (record,) = read_runs([folder])
    return {**figures(record), "folder": str(folder.relative_to(out))}


def _stopped(job: Job, history: Callable[[], RunHistory]) -> Callable[[], bool]:
    """Return what ends a run whose limit the engine has not."""
    if job.budget != "evaluations":
        return lambda: False
    return lambda: sum(map(is_evaluation, history().children.values())) >= job.amount


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    try:
        main(Path(sys.argv[1]), int(sys.argv[2]))
    except KeyboardInterrupt:
        sys.exit(130)
