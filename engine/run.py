"""``python -m engine.run``: starts or resumes a run, and says what became of it.

    python -m engine.run problem=signal model=smollm2 search.k=8 seed=0
    python -m engine.run resume=runs/NAME
    python -m engine.run --multirun search.k=1,2,4,8 seed=0,1,2

The keys and their defaults stand in ``engine/conf``. Exit codes: 0 when a limit of the budget
is reached, 2 for bad input, 130 after Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from engine import config
from engine.assembly import Run
from engine.budget import Limit, ended_by
from engine.core import UserError
from engine.interrupt import interruptible, terminable
from engine.report import Display, print_result, write_results
from engine.store import RunHistory
from engine.sweep import sweep


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("brood").setLevel(logging.INFO)
    logging.getLogger("engine").setLevel(logging.INFO)
    if {"--help", "-h"} & set(arguments):
        print(__doc__)
        return 0
    try:
        with terminable():
            return _dispatch(arguments)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # before the loop, or for the second time
        print("interrupted; a run that has a folder goes on with resume=FOLDER", file=sys.stderr)
        return 130


def _dispatch(arguments: Sequence[str]) -> int:
    if {"--multirun", "-m"} & set(arguments):
        return sweep([each for each in arguments if each not in ("--multirun", "-m")])
    if any(each.startswith("resume=") for each in arguments):
        if len(arguments) != 1:
            raise UserError(
                "resume=FOLDER takes no other argument: a run goes on as it was configured"
            )
        run = Run.resume(Path(arguments[0].removeprefix("resume=")))
    else:
        run = Run.start(config.resolve(arguments))
    with run as it:
        return _evolve(it)


def _evolve(run: Run) -> int:
    """Run the loop to its end, report on it, and return the exit code."""
    was_over = run.is_over
    with interruptible() as stopped:
        run.evolve(stopped=stopped, watch=partial(_display, run))
        is_stopped = stopped() and not was_over
    return _report(run, stopped=is_stopped)


@contextmanager
def _display(run: Run, history: RunHistory) -> Iterator[Callable[[], None]]:
    title = f"brood · {run.problem.name} · {run.settings.model.name} · {run.folder}"
    with Display(settings=run.settings, history=history, title=title) as display:
        yield display.update


def _report(run: Run, *, stopped: bool) -> int:
    """Write and print the results; return the exit code.

    Args:
        run: that has ended, for now.
        stopped: whether the user asked for that.
    """
    history, budget = run.history, run.settings.budget
    limit = None
    if run.is_over:
        limit = ended_by(budget, run.log.events(), direction=run.problem.direction)
    elif not stopped:  # the clock ran out after the last event
        limit = Limit.SECONDS
    summary = write_results(
        folder=run.folder,
        settings=run.settings,
        problem=run.problem,
        history=history,
        ended_by=limit,
    )
    best = history.best
    program = None if best is None else history.program_of(best.candidate)
    print_result(folder=run.folder, summary=summary, program=program)
    if stopped and not run.is_over:
        print(f"Stopped. Go on with: python -m engine.run resume={run.folder}")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
