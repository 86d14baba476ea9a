"""``python -m engine.run``: starts or resumes a run or a sweep, and says what became of it.

    python -m engine.run problem=signal model=smollm2 search.k=8 seed=0
    python -m engine.run resume=runs/NAME
    python -m engine.run resume=runs/NAME problem.path=FOLDER    # on another machine
    python -m engine.run --multirun search.k=1,2,4,8 seed=0,1,2 name=widths

With ``--multirun`` there is a run for every combination of values, one after the other. Those that
need the same model share one that is loaded once. The runs lie in one folder, ``name`` under
``runs``, each named by the values that set it apart. A table that compares them ends the sweep. A
sweep that was stopped or killed goes on with the same command, if it has a ``name``, or with
``resume=FOLDER`` of the sweep.

The keys and their defaults stand in ``engine/conf``. Exit codes: 0 when a limit of the budget
is reached, 2 for bad input, 75 where the model was lost and new processes did not help, 130 after
Ctrl-C, SIGTERM or SIGHUP; of a sweep, the first that is not 0.
"""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from engine import config
from engine.api.run import Run
from engine.arguments import Arguments, execute
from engine.cluster.before_ray import prepare_ray
from engine.cluster.places import is_on_cluster
from engine.core import UserError
from engine.interrupt import terminable
from engine.paths import expanded
from engine.restart import answers, restart
from engine.session import evolve, log_to_terminal
from engine.store import check_goes_on
from engine.sweep import is_sweep, plan, read_sweep, run_all
from engine.terminal import INTERRUPTED, MODEL_LOST, complain

_SERVER = "cache.server_pid="


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    log_to_terminal()
    return execute(_run, arguments, keys=(), usage=__doc__ or "")


def _run(given: Arguments) -> int:
    try:
        with terminable():
            return _dispatch(given.rest)
    except KeyboardInterrupt:  # before the loop, or for the second time
        complain("interrupted; a run that has a folder goes on with resume=FOLDER")
        return INTERRUPTED


def _dispatch(arguments: Sequence[str]) -> int:
    if {"--multirun", "-m"} & set(arguments):
        return run_all(plan([each for each in arguments if each not in ("--multirun", "-m")]))
    if any(each.startswith("resume=") for each in arguments):
        return _resume(arguments)
    settings = config.resolve(arguments)
    if settings.cluster.kind != "none":
        prepare_ray()
        from engine.cluster import session

        return session.start(settings)
    log_to_terminal(settings.log)
    return _evolve(Run.start(settings))


def _resume(arguments: Sequence[str]) -> int:
    (named, *more), changes = _split(arguments)
    if more:
        raise UserError("resume= is given twice")
    folder = expanded(Path(named.removeprefix("resume=")), what="run")
    if changes and (is_sweep(folder) or is_on_cluster(folder)):
        raise UserError(
            "a sweep, and a run on a cluster, goes on as it was configured; leave "
            f"{changes[0]} away"
        )
    if is_sweep(folder):
        return run_all(read_sweep(folder))
    if is_on_cluster(folder):
        prepare_ray()
        from engine.cluster import session  # and Ray with it: no other run needs that

        return session.resume(folder)
    check_goes_on(folder)  # before its settings, which may be an earlier version's too
    log_to_terminal(config.load_resumed(folder, changes=changes).log)
    return _evolve(Run.resume(folder, changes=changes), changes=changes)


def _evolve(run: AbstractContextManager[Run], *, changes: Sequence[str] = ()) -> int:
    """Go on with a run to its end, in a new process where its model is lost.

    Args:
        run: that is started or resumed.
        changes: arguments that were given beside ``resume=``.
    """
    with run as it:
        before = answers(it.history)
        code = evolve(it)
    if code == MODEL_LOST:
        server = it.settings.cache.server_pid  # a moment later still the server's
        if server is not None and not any(each.startswith(_SERVER) for each in changes):
            changes = [*changes, f"{_SERVER}{server}"]
        restart(it.folder, changes=changes, got_on=answers(it.history) > before)
    return code


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments that name a run to go on with, and the others."""
    named = [each for each in arguments if each.startswith("resume=")]
    return named, [each for each in arguments if each not in named]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
