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
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from engine import config
from engine.arguments import Arguments, execute
from engine.assembly import Run
from engine.budget import Limit, ended_by
from engine.core import UserError
from engine.interrupt import handled, interruptible, terminable
from engine.report import Display, print_result, write_results

_INTERRUPTED = 130
_log = logging.getLogger("brood")


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("brood").setLevel(logging.INFO)
    logging.getLogger("engine").setLevel(logging.INFO)
    try:
        with terminable():
            return execute(_dispatch, arguments, keys=(), usage=__doc__ or "")
    except KeyboardInterrupt:  # before the loop, or for the second time
        print("interrupted; a run that has a folder goes on with resume=FOLDER", file=sys.stderr)
        return _INTERRUPTED


def _dispatch(given: Arguments) -> int:
    arguments = given.rest
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
        title = f"brood · {run.problem.name} · {run.settings.model.name} · {run.folder}"
        run.evolve(stopped=stopped, watch=partial(Display, settings=run.settings, title=title))
        is_stopped = stopped() and not was_over
    return _report(run, stopped=is_stopped)


def _report(run: Run, *, stopped: bool) -> int:
    """Write and print the results; return the exit code.

    Args:
        run: that has ended, for now.
        stopped: whether the user asked for that.
    """
    limit, history = None, run.history
    if run.is_over:
        direction = run.problem.direction
        limit = ended_by(run.settings.budget, run.log.events(), direction=direction)
    elif not stopped:  # the clock ran out after the last event
        limit = Limit.SECONDS
    summary = write_results(
        folder=run.folder,
        settings=run.settings,
        problem=run.problem,
        history=history,
        ended_by=limit,
    )
    program = history.program_of(summary["best_candidate"])
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
    first = config.resolve(jobs[0])
    parent = Path(first.runs) / (first.name or time.strftime("multirun-%Y%m%d-%H%M%S"))
    if parent.exists():
        raise UserError(f"{parent} exists; give another name=")
    runs = {}
    for name, job in _named(jobs).items():
        runs[name] = [*job, f"runs={config.quoted(str(parent))}", f"name={config.quoted(name)}"]
        config.resolve(runs[name])
    return _run_each(runs)


def _run_each(runs: Mapping[str, Sequence[str]]) -> int:
    """Run one after the other, each by its arguments; return the first exit code that is not 0.

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
        for number, (name, arguments) in enumerate(runs.items(), start=1):
            _log.info("run %d of %d: %s", number, len(runs), name)
            process = subprocess.Popen([sys.executable, "-m", "engine.run", *arguments])
            if told:  # while it was being started
                process.terminate()
            codes.append(process.wait())
            if told or codes[-1] == _INTERRUPTED:
                return _INTERRUPTED
    return next((code for code in codes if code != 0), 0)


def _named(jobs: Sequence[Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the jobs by the names of their runs' folders.

    Raises:
        UserError: two are equal.
    """
    common = set(jobs[0]).intersection(*jobs)
    names = [
        "_".join(each for each in job if each not in common).replace("/", "-") or "only"
        for job in jobs
    ]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise UserError(f"{count} runs of the sweep would be named {name!r}; give a value once")
    return dict(zip(names, jobs, strict=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
