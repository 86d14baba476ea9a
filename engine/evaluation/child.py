"""A candidate's own process, from the fork to its end: confined, then given to the program.

Does not cover: what the program does (``program``) and when it is killed (``worker``).
"""

from __future__ import annotations

import math
import os
import random
import signal
import traceback
from dataclasses import dataclass
from typing import NoReturn

from engine.core import Case
from engine.evaluation import _native, program, wire
from engine.evaluation.wire import Setup

EXIT_RETURNED, EXIT_RAISED, EXIT_INTERNAL = 0, 1, 70

_RESULT_FD = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Child:
    """What a forked child has to know: what to run, and where its result and output go."""

    worker: int
    setup: Setup
    program: str
    case_index: int | None
    result_fd: int
    output_fd: int


class InChild(BaseException):
    """Unwinds a forked child's stack, so that no frame there holds what the fork server knows."""

    def __init__(self, child: Child) -> None:
        super().__init__()
        self.child = child


def run_child(child: Child) -> NoReturn:
    """Shut every door that can be shut here, run the program, and never return."""
    exit_code = EXIT_INTERNAL
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _native.die_with_parent(parent=child.worker, signal=signal.SIGKILL)
        _redirect(child.result_fd, child.output_fd)
        setup = child.setup
        _native.confine(
            memory_bytes=setup.memory_bytes,
            cpu_seconds=math.ceil(setup.seconds) + 1,
            file_bytes=0,
        )
        random.seed(0)  # as in `_warm_up`; Python seeds `random` anew after each fork
        result = program.run(child.program, setup.entry_point, _own_cases(setup, child.case_index))
        view = memoryview(result)
        while view:
            view = view[os.write(_RESULT_FD, view) :]
        exit_code = EXIT_RETURNED if result.startswith(wire.RETURNED) else EXIT_RAISED
    except BaseException:  # whatever it is, this process must not go on as a second fork server
        traceback.print_exc()
    finally:
        os._exit(exit_code)


def _redirect(result_fd: int, output_fd: int) -> None:
    """Leave four descriptors open: nothing to read, two to print to, and the result."""
    null = os.open(os.devnull, os.O_RDONLY)
    # Move the pipes out of the way first, so that no dup2 closes one still to be copied.
    safe_result, safe_output, safe_null = (os.dup(fd) for fd in (result_fd, output_fd, null))
    os.dup2(safe_null, 0)
    os.dup2(safe_output, 1)
    os.dup2(safe_output, 2)
    os.dup2(safe_result, _RESULT_FD)
    os.closerange(_RESULT_FD + 1, os.sysconf("SC_OPEN_MAX"))


def _own_cases(setup: Setup, case_index: int | None) -> list[Case]:
    """Return the cases to run; an isolated child forgets the others before the program runs."""
    if case_index is not None:
        setup.cases[:] = [setup.cases[case_index]]
    return setup.cases
