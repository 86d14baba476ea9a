"""A process of a sweep: ``python -m engine.sweep FOLDER RESULTS NAME...`` runs the runs so named.

Each run's exit code is a line to the descriptor RESULTS. An error that nobody expects ends the
process, and so does a model that is lost; the sweep goes on with another one.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from engine import config
from engine.api.run import Run
from engine.arguments import Arguments, execute
from engine.interrupt import terminable
from engine.session import evolve, log_to_terminal
from engine.store import check_goes_on
from engine.sweep.comparison import place
from engine.sweep.plan import Planned, Sweep, read_sweep
from engine.sweep.shared import SharedModel
from engine.terminal import INTERRUPTED, MODEL_LOST, going_on_without

_PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def main(arguments: Sequence[str]) -> int:
    """Run the runs; return the exit code of the last one."""
    folder, results, *names = arguments
    sys.path.append(str(Path.cwd()))  # the user's own policies, as in engine.cli
    # A sweep that is killed leaves no process behind.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    log_to_terminal()
    sweep = read_sweep(Path(folder))
    runs = {each.name: each for each in sweep.runs}
    code = 0
    try:
        with terminable(), closing(SharedModel()) as model:
            for name in names:
                code = run_one(sweep, runs[name], model)
                if code == MODEL_LOST:  # for the next run too
                    break
                os.write(int(results), f"{code}\n".encode())
                if code == INTERRUPTED:
                    break
    except KeyboardInterrupt:  # between two runs, or for the second time
        return INTERRUPTED
    if code == MODEL_LOST:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # a thread may hang in the engine, which would hold this process back
    return code


def run_one(sweep: Sweep, planned: Planned, model: SharedModel) -> int:
    """Start a run, or go on with it; bad input is one line, and 2."""

    def command(given: Arguments) -> int:
        where, folder, settings = place(sweep, planned), planned.folder, planned.settings
        with going_on_without():
            print(f"\n{where}")
        log_to_terminal(settings.log)
        if folder.exists():
            check_goes_on(folder)  # before its settings, which may be an earlier version's too
            begun = config.load_run(folder)  # the model's number format too
            run = Run.resume(folder, load=model.loader(begun))
        else:
            load = model.loader(settings)
            run = Run.start(settings, load=load, stored_as=planned.stored_as)
        with run as it:
            return evolve(it, place=where)

    return execute(command, [], keys=(), usage="")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
