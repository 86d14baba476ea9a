"""A run whose model is lost goes on by itself, in a new process in place of this one.

A thread that hangs in the engine can't be ended, and what the driver of a GPU refuses once it may
refuse this process for ever. A new process has neither, and everything that the run has recorded is
on disk, so it goes on as it would after ``kill -9``. The process keeps its number, its terminal and
its place in a batch system.

It does so as often as it gets on: a process that recorded no answer of the model counts, and after
`MOST` of them in a row the run ends, with exit code `MODEL_LOST`.

Does not cover when a model is lost (``engine.inference``), or runs whose process others look after:
those of a sweep and of a cluster.
"""

import logging
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.core import Refusal
from engine.store import RunHistory
from engine.terminal import MODEL_LOST

MOST = 3
"""Processes in a row that recorded nothing."""
_FRUITLESS = "BROOD_FRUITLESS"
"""Variable that tells the next process how many there were before it."""
_BROOD = ("-P", "-c", "import sys; from engine.cli.main import main; sys.exit(main())")
"""``brood``: unlike ``python -m``, it lets no file of the user's folder hide a module of ours."""
_log = logging.getLogger("brood")


def answers(history: RunHistory) -> int:
    """Return how many answers of the model a run has."""
    return sum(each.refusal is not Refusal.FAILED for each in history.children.values())


def restart(folder: Path, *, changes: Sequence[str] = (), got_on: bool) -> None:
    """Go on with a run in a new process, or end this one; does not return.

    Call it with everything closed that can be: no destructor and no ``finally`` runs any more.

    Args:
        folder: the run's.
        changes: arguments that were given beside ``resume=``.
        got_on: whether this process has recorded an answer of the model.
    """
    arguments = [f"resume={folder}", *changes]
    command = shlex.join(["-m", "engine.run", *arguments])
    fruitless = 0 if got_on else 1 + int(os.environ.get(_FRUITLESS, "0"))
    is_over = fruitless >= MOST
    if is_over:
        _log.error(
            "%d processes in a row lost the model before it had answered; see what it needs, and "
            "go on with: python %s",
            fruitless,
            command,
        )
    else:
        _log.warning("going on in a new process: python %s", command)
    sys.stdout.flush()
    sys.stderr.flush()
    if is_over:
        os._exit(MODEL_LOST)
    os.environ[_FRUITLESS] = str(fruitless)
    os.execv(sys.executable, [sys.executable, *_BROOD, "run", *arguments])
