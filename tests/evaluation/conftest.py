"""The tiny problem of these tests, and one pool for all hostile programs."""

import dataclasses
import os
import platform
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hostile import Check, Hostile, check
from processes import zygotes
from verdicts import walls_missing

import evaluators
from engine.core import Evaluation, Failure, Limits, Problem
from engine.evaluation import EvaluatorPool
from engine.problem import load_problem

DOUBLE = Path(__file__).parent / "problems" / "double"
SECRET = "the run's own data"

# Numbers of system calls that the C library has no function for, and that differ by machine.
CALLS = {
    "x86_64": {
        **{"BPF": 321, "KEYCTL": 250, "PERF": 298, "SECCOMP": 317, "USERFAULTFD": 323},
        **{"PIVOT_ROOT": 155, "KCMP": 312, "FINIT_MODULE": 313, "KEXEC_LOAD": 246, "CLONE": 56},
        **{"MOVE_PAGES": 279, "IOPRIO_SET": 251, "EXECVEAT": 322},
    },
    "aarch64": {
        **{"BPF": 280, "KEYCTL": 219, "PERF": 241, "SECCOMP": 277, "USERFAULTFD": 282},
        **{"PIVOT_ROOT": 41, "KCMP": 272, "FINIT_MODULE": 273, "KEXEC_LOAD": 104, "CLONE": 220},
        **{"MOVE_PAGES": 239, "IOPRIO_SET": 30, "EXECVEAT": 281},
    },
}


@pytest.fixture(scope="session")
def double() -> Problem:
    return load_problem(DOUBLE)


@pytest.fixture(scope="module")
def patient(double: Problem) -> Problem:
    """The same with ten seconds: a program that a loaded machine makes slow is not late."""
    return dataclasses.replace(double, limits=Limits(seconds=10, memory_bytes=256 << 20))


@pytest.fixture(scope="module")
def pool(patient: Problem) -> Iterator[EvaluatorPool]:
    with EvaluatorPool(problem=patient, workers=1) as pool:
        yield pool


@pytest.fixture(scope="module")
def quick(double: Problem) -> Iterator[EvaluatorPool]:
    """Evaluators with half a second, for programs that use all of their time."""
    limits = Limits(seconds=0.5, memory_bytes=256 << 20)
    with EvaluatorPool(problem=dataclasses.replace(double, limits=limits), workers=1) as pool:
        yield pool


@pytest.fixture(scope="module")
def missing_walls(pool: EvaluatorPool) -> set[str]:
    """The walls that this machine lacks, as the pool says in its log."""
    return walls_missing(pool)


@pytest.fixture(scope="session")
def listeners() -> Iterator[dict[str, object]]:
    """Sockets of ours that a program may try to reach, by the names that it knows them under."""
    name = f"brood-test-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        udp.bind(("127.0.0.1", 0))
        abstract.bind(f"\0{name}")
        abstract.listen()
        yield {
            "TCP_PORT": tcp.getsockname()[1],
            "UDP_PORT": udp.getsockname()[1],
            "ABSTRACT": f"\0{name}",
        }


@pytest.fixture
def attack(
    request: pytest.FixtureRequest,
    pool: EvaluatorPool,
    missing_walls: set[str],
    listeners: dict[str, object],
    tmp_path: Path,
) -> Check:
    """Return a function that runs a hostile program and checks all that must hold after it."""
    secret = tmp_path / "events.jsonl"
    secret.write_text(SECRET)
    names: dict[str, object] = {
        "FOLDER": str(tmp_path),
        "MARK": f"brood-hostile-{os.getpid()}",
        "SECRET": str(secret),
        "EVALUATORS": str(next(iter(evaluators.__path__))),
        "PROBLEM": str(DOUBLE),
        "TEST": os.getpid(),
        **listeners,
        **CALLS[platform.machine()],
    }

    def run(hostile: Hostile) -> Evaluation:
        if hostile.wall in missing_walls:
            pytest.skip(f"this machine lacks the wall {hostile.wall}")
        is_endless = hostile.failure is Failure.TIMEOUT
        evaluation = check(hostile, request.getfixturevalue("quick") if is_endless else pool, names)
        assert secret.read_text() == SECRET
        return evaluation

    return run


@pytest.fixture
def new_zygotes() -> Callable[[], list[int]]:
    """Return a function that lists the zygotes that were not there before the test."""
    before = zygotes(os.getpid())
    return lambda: [pid for pid in zygotes(os.getpid()) if pid not in before]
