"""The problem of a run on the machines that it uses: what each has of it has to be the same."""

import socket

from engine.core import Problem, UserError
from engine.parts import read_problem
from engine.settings import RunSettings


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
