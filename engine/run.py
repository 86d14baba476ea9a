"""``python -m engine.run``: starts or resumes a run, and says what became of it.

    python -m engine.run problem=signal model=smollm2 search.k=8 seed=0
    python -m engine.run resume=runs/NAME
    python -m engine.run --multirun search.k=1,2,4,8 seed=0,1,2

With ``--multirun`` there is a run for every combination of values, one after the other. Each is a
process of its own: it has the whole machine, and the next one starts afresh. The runs lie in one
folder, ``name`` under ``runs``, each named by the values that set it apart.

The keys and their defaults stand in ``engine/conf``. Exit codes: 0 when a limit of the budget
is reached, 2 for bad input, 130 after Ctrl-C or SIGTERM.
"""

import logging
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from engine import config
from engine.assembly import Run
from engine.budget import Limit, ended_by
from engine.core import UserError
from engine.interrupt import handled, interruptible, terminable
from engine.report import Display, print_result, write_results
from engine.section import in_a_line
from engine.settings import RunSettings
from engine.store import RunHistory

_INTERRUPTED = 130
_log = logging.getLogger("brood")


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
        return _INTERRUPTED


def _dispatch(arguments: Sequence[str]) -> int:
    if {"--multirun", "-m"} & set(arguments):
        return _sweep([each for each in arguments if each not in ("--multirun", "-m")])
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
        return _INTERRUPTED
    return 0


def _sweep(arguments: Sequence[str]) -> int:
    """Run every combination; return the first exit code that is not 0.

    Raises:
        UserError: one of the runs can't begin as it is configured; none has then.
    """
    jobs = config.expand(arguments)
    settings = [config.resolve(job) for job in jobs]
    parent = Path(settings[0].runs) / (settings[0].name or time.strftime("multirun-%Y%m%d-%H%M%S"))
    if parent.exists():
        raise UserError(f"{parent} exists; give another name=")
    commands = []
    for job, name in zip(jobs, _names(jobs, settings), strict=True):
        place = (f"runs={config.quoted(str(parent))}", f"name={config.quoted(name)}")
        commands.append((name, [sys.executable, "-m", "engine.run", *job, *place]))
    return _run_each(commands)


def _run_each(commands: Sequence[tuple[str, Sequence[str]]]) -> int:
    """Run one command after the other; return the first exit code that is not 0.

    A signal ends the run, in good order, and with it the sweep. A terminal sends Ctrl-C to both,
    which the run takes for one request with the SIGTERM that it gets from here.
    """
    codes = []
    told = False
    process: subprocess.Popen[bytes] | None = None

    def hear(number: int, frame: object) -> None:
        nonlocal told
        told = True
        if process is not None:
            process.terminate()

    with handled(hear, signal.SIGINT, signal.SIGTERM):
        for number, (name, command) in enumerate(commands, start=1):
            _log.info("run %d of %d: %s", number, len(commands), name)
            process = subprocess.Popen(command)
            if told:  # while it was being started
                process.terminate()
            codes.append(process.wait())
            if told or codes[-1] == _INTERRUPTED:
                return _INTERRUPTED
    return next((code for code in codes if code != 0), 0)


def _names(jobs: Sequence[Sequence[str]], settings: Sequence[RunSettings]) -> list[str]:
    """Return the names of the runs' folders, in the jobs' order.

    Raises:
        UserError: two are equal, or one can't be a folder's.
    """
    common = set(jobs[0]).intersection(*jobs)
    names = [
        "_".join(each for each in job if each not in common).replace("/", "-") or "only"
        for job in jobs
    ]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise UserError(f"{count} runs of the sweep would be named {name!r}; give a value once")
    for name, each in zip(names, settings, strict=True):
        try:
            replace(each, name=name)
        except ValidationError as error:
            line = in_a_line(error, kind=RunSettings)
            raise UserError(f"a sweep names its runs by the values that differ: {line}") from error
    return names


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
