"""One session of a run at a terminal: its loop with a display, then its results.

What ``engine.run`` and the processes of a sweep (``engine.sweep``) share.
"""

import logging
from functools import partial

from engine.api.run import Run
from engine.budget import Limit, ended_by
from engine.inference import ModelLost
from engine.interrupt import interruptible
from engine.report import Display, print_result, write_results
from engine.terminal import INTERRUPTED, MODEL_LOST, going_on_without
from engine.watching import JsonFormatter

_log = logging.getLogger("brood")


def log_to_terminal(form: str = "text") -> None:
    """Have the engine's messages printed to standard error, and only warnings of others.

    Args:
        form: ``text``, or ``json`` for lines of JSON from now on; see ``engine.watching``.
    """
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    if form == "json":
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonFormatter())
    logging.getLogger("brood").setLevel(logging.INFO)
    logging.getLogger("engine").setLevel(logging.INFO)


def evolve(run: Run, *, place: str = "") -> int:
    """Run the loop to its end, report on it, and return the exit code.

    Args:
        run: that was started or resumed.
        place: of the run in a sweep, for the title; empty for none.
    """
    was_over, lost = run.is_over, False
    with interruptible() as stopped:
        parts = (place, run.problem.name, run.settings.model.name, str(run.folder))
        title = " · ".join(["brood", *filter(None, parts)])
        try:
            run.evolve(stopped=stopped, watch=partial(Display, settings=run.settings, title=title))
        except ModelLost as error:
            _log.error("the model is lost: %s", error)
            lost = True
        is_stopped = (stopped() or run.steering.is_stopped) and not was_over
    code = _report(run, stopped=is_stopped, lost=lost)
    return MODEL_LOST if lost and code == 0 else code


def _report(run: Run, *, stopped: bool, lost: bool) -> int:
    """Write and print the results; return the exit code of a run that is not lost.

    Args:
        run: that has ended, for now.
        stopped: whether the user asked for that.
        lost: whether the model is lost.
    """
    limit, history = None, run.history
    if run.is_over:
        direction = run.problem.direction
        limit = ended_by(run.settings.budget, run.log.events(), direction=direction)
    elif not stopped and not lost:  # the clock ran out after the last event
        limit = Limit.SECONDS
    summary = write_results(
        folder=run.folder,
        settings=run.settings,
        problem=run.problem,
        history=history,
        ended_by=limit,
    )
    program = history.program_of(summary["best_candidate"])
    is_left = stopped and not run.is_over
    with going_on_without():
        print_result(folder=run.folder, summary=summary, program=program)
        if is_left:
            print(f"Stopped. Go on with: python -m engine.run resume={run.folder}")
    return INTERRUPTED if is_left else 0
