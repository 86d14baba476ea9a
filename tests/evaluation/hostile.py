"""Hostile programs: how the tests write them down, and what holds after each one.

A program makes its attempt and then goes on as an honest one. So an attempt that a wall stops
shows as a failure, one that is harmless as the honest score, and one that got through as a score
where a failure was due.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from processes import below, descendants, entries, eventually
from verdicts import evaluate

from engine.core import Evaluation, Failure
from engine.evaluation import EvaluatorPool

_TEMPLATE = """\
import ctypes, os, signal, sys, threading, time
import numpy as np

libc = ctypes.CDLL(None, use_errno=True)


def call(*arguments):
    "Make a system call: a number of it, or a function of the C library, and its arguments."
    function, *rest = arguments
    if not callable(function):
        function, rest = libc.syscall, arguments
    converted = [ctypes.c_long(each) if isinstance(each, int) else each for each in rest]
    result = function(*converted)
    if result == -1:
        raise OSError(ctypes.get_errno(), "call")
    return result


{before}
def double(values, offset=0.0):
{attempt}
    return 2 * values + offset, len(values)
"""

WITNESS = """\
import builtins, gc, os, random, signal, sys, time
import numpy as np


def double(values, offset=0.0):
    print(os.getppid(), os.getcwd())
    print(random.random(), np.random.rand(), len(gc.get_objects()), hash(str(vars(builtins))))
    print(hash(str(sorted(sys.modules))), sys.path, sys.gettrace(), sys.getrecursionlimit())
    print(sorted(os.environ), np.geterr(), os.lseek(4, 0, 1))
    print(hash(str([signal.getsignal(number) for number in signal.valid_signals()])))
    print(os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0), signal.getitimer(0))
    return np.sum([values, values], axis=0), int(np.sum(np.ones(4)))
"""
"""An honest program that prints what others could have left behind."""

SLOW = "import time\ndef double(values, offset):\n    time.sleep(0.3)\n    return 2 * values, 4\n"
ENDLESS = "while True: pass\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Hostile:
    """What a program tries, and its one proper verdict.

    Attributes:
        name: names the test.
        attempt: lines of the program's function.
        before: lines in front of the function.
        failure: the proper verdict; None for the honest program's score.
        words: what its message says.
        wall: the wall that it runs against; where the machine lacks that one, it is not run.
    """

    name: str
    attempt: str
    before: str = ""
    failure: Failure | None = Failure.ERROR
    words: str = ""
    wall: str = ""

    def program(self, names: Mapping[str, object]) -> str:
        """Return the text; it may use ``names``."""
        constants = "".join(f"{name} = {value!r}\n" for name, value in names.items())
        return constants + _TEMPLATE.format(
            attempt=textwrap.indent(textwrap.dedent(self.attempt).strip("\n"), "    "),
            before=textwrap.dedent(self.before),
        )


Check = Callable[[Hostile], Evaluation]


@dataclass(frozen=True, kw_only=True)
class Traces:
    """What a program could leave behind outside of its own process."""

    processes: int
    threads: int
    descriptors: int
    files: list[str]

    @classmethod
    def now(cls, zygote: int, folders: Sequence[Path], mark: str) -> Traces:
        """Look below the zygote, in ``folders``, and elsewhere for files with ``mark``."""
        files = [path for folder in folders for path in below(folder)]
        for each in (Path("/tmp"), Path("/dev/shm"), Path.home(), Path.cwd()):
            files += each.glob(f"{mark}*")
        return cls(
            processes=len(descendants(zygote)),
            threads=entries("/proc/self/task"),
            descriptors=entries("/proc/self/fd"),
            files=sorted(str(path) for path in files),
        )

    def within(self, clean: Traces) -> bool:
        """Return whether nothing is there that was not; what other tests left may go meanwhile."""
        return (
            (self.processes, self.files) == (clean.processes, clean.files)
            and self.threads <= clean.threads
            and self.descriptors <= clean.descriptors
        )


def check(hostile: Hostile, pool: EvaluatorPool, names: Mapping[str, object]) -> Evaluation:
    """Run ``hostile``; check its verdict and what it left behind."""
    before = _witness(pool)
    zygote, scratch = before.artifacts["stdout"].splitlines()[0].split()
    folders, mark = [Path(str(names["FOLDER"])), Path(scratch)], str(names["MARK"])

    def traces() -> Traces:
        return Traces.now(int(zygote), folders, mark)

    clean = dataclasses.replace(traces(), processes=1)  # the child that waits for a program
    evaluation = evaluate(pool, hostile.program(names))
    assert_verdict(evaluation, hostile)
    after = _witness(pool)
    assert after.score == before.score == 1.0, (before, after)
    assert after.artifacts == before.artifacts
    assert eventually(lambda: traces().within(clean)), (traces(), clean)
    return evaluation


def _witness(pool: EvaluatorPool) -> Evaluation:
    """Run the honest program until it has the time that it needs, which is far below any limit."""
    for _ in range(5):
        evaluation = evaluate(pool, WITNESS)
        if evaluation.failure is not Failure.TIMEOUT:
            break
    return evaluation


def assert_verdict(evaluation: Evaluation, hostile: Hostile) -> None:
    assert evaluation.failure == hostile.failure, evaluation
    assert hostile.words in evaluation.message
    assert "\n" not in evaluation.message
    assert evaluation.score == (1.0 if hostile.failure is None else None)


def collect(pool: EvaluatorPool) -> dict[str, object]:
    """Return what became of all programs in flight: their scores, or why they have none."""
    found: dict[str, object] = {}
    while pool.in_flight:
        for candidate_id, evaluation in pool.completed(timeout=30):
            assert candidate_id not in found
            found[candidate_id] = evaluation.failure or evaluation.score
    return found


def table(*rows: Hostile) -> pytest.MarkDecorator:
    """Return the decorator that runs a test for each row."""
    assert len({row.name for row in rows}) == len(rows)
    return pytest.mark.parametrize("hostile", rows, ids=lambda row: row.name)
