"""The processes of a sweep: one for all runs that can share what is loaded, one after the other.

Runs share a model where ``model`` and ``evaluation.workers`` are equal and nothing of one run can
reach the next: the prefix cache is emptied between them, each child has a seed of its own, and each
run has evaluators and syntax workers of its own. A run that learns, has an advisor or keeps its
prompts' KV in LMCache has a process to itself. So has the rest of a group whose process died. The
run of one that lost its model goes on in up to two more.
"""

import logging
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial

from engine.interrupt import handled
from engine.restart import MOST
from engine.sweep.plan import Planned, Sweep
from engine.sweep.shared import shared
from engine.terminal import INTERRUPTED, MODEL_LOST, going_on_without

_log = logging.getLogger("brood")


def run_all(sweep: Sweep) -> int:
    """Run what is left of a sweep and compare its runs; return the first exit code that is not 0.

    A signal ends the run that goes on, in good order, and with it the sweep. A terminal sends
    Ctrl-C to the run's process too; while it starts it ignores that, and later it takes it for one
    request with the SIGTERM from here.

    Raises:
        UserError: the sweep's folder can't be written.
    """
    sweep.write()
    left = [each for each in sweep.runs if each.summary() is None]
    if done := len(sweep.runs) - len(left):
        _log.info("%d of %d runs are done; going on with the others", done, len(sweep.runs))
    codes: list[int] = []
    lost = Counter[str]()  # processes that lost their model, by the run that they were at
    told = False
    process: subprocess.Popen[bytes] | None = None

    def hear(number: int, frame: object) -> None:
        nonlocal told
        told = True
        if process is not None:
            process.terminate()

    groups = grouped(left)
    with handled(hear, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        while groups and not told:
            group = groups.pop(0)
            reading, writing = os.pipe()
            process = _start(sweep, group, results=writing)
            os.close(writing)
            if told:  # while it was being started
                process.terminate()
            with os.fdopen(reading) as results:
                found = [int(line) for line in results]
            code = process.wait()
            codes += found
            if told or INTERRUPTED in (code, *found):
                told = True
            elif len(found) < len(group):  # it died of the one that it was at
                at = group[len(found)].name
                lost[at] += code == MODEL_LOST
                may_go_on = code == MODEL_LOST and lost[at] < MOST
                if not may_go_on:
                    codes.append(code or 1)
                if rest := group[len(found) + (not may_go_on) :]:
                    groups.insert(0, rest)
    if told:
        with going_on_without():
            print(f"Stopped. Go on with: python -m engine.run resume={sweep.folder}")
        return INTERRUPTED
    from engine.sweep.comparison import compare  # and scipy.stats with it: half a second

    table = compare(sweep)
    with going_on_without():
        sys.stdout.write(table)
    sweep.remove_if_empty()
    return next((code for code in codes if code != 0), 0)


def grouped(runs: Sequence[Planned]) -> list[list[Planned]]:
    """Return the runs in groups that can each have one process."""
    groups: dict[object, list[Planned]] = {}
    for each in runs:
        groups.setdefault(shared(each.settings) or each.name, []).append(each)
    return list(groups.values())


def _start(sweep: Sweep, group: Sequence[Planned], *, results: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "engine.sweep", str(sweep.folder), str(results)]
    ignore = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    return subprocess.Popen(
        [*command, *(each.name for each in group)], pass_fds=[results], preexec_fn=ignore
    )
