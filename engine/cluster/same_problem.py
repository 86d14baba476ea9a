"""What a run needs on each machine that it uses: its problem, and its folder without a server."""

import socket
from pathlib import Path

from engine.core import Problem, UserError
from engine.parts import read_problem
from engine.settings import RunSettings
from engine.store import is_held


def problem_here(settings: RunSettings, *, fingerprint: str) -> Problem:
    """Return a run's problem as it lies on this machine.

    Args:
        settings: the run's.
        fingerprint: of the problem on the driver's machine.

    Raises:
        UserError: it can't be read here, or is not the driver's.
    """
    problem = read_problem(settings)
    if problem.fingerprint != fingerprint:
        raise UserError(
            f"{problem.folder}, its data or a kernel of its is not on {socket.gethostname()} what "
            "it is where the run was started, so scores would not compare; copy it there"
        )
    return problem


def check_folder_here(folder: Path) -> None:
    """Check that a run's folder is on this machine, and not another run's in its place.

    The driver has its lock as long as the run goes on.

    Raises:
        UserError: it is not.
    """
    if not is_held(folder):
        raise UserError(
            f"{folder} is not on {socket.gethostname()} what it is where the run was started; with "
            "several machines a server has the events: begin the run with "
            "store=postgresql://USER@HOST/DATABASE"
        )
