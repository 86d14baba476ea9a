"""The tiny problem of these tests, and one pool for all hostile programs."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.core import Problem
from engine.evaluation import EvaluatorPool
from engine.problem import load_problem

DOUBLE = Path(__file__).parent / "problems" / "double"


@pytest.fixture(scope="session")
def double() -> Problem:
    return load_problem(DOUBLE)


@pytest.fixture(scope="session")
def pool(double: Problem) -> Iterator[EvaluatorPool]:
    with EvaluatorPool(problem=double, workers=1) as pool:
        yield pool


@pytest.fixture
def processes_of() -> Callable[[str], list[int]]:
    """Return a function that lists the living processes below this one with a mark.

    The mark is looked for on the command line. Other runs on the machine do not count.
    """

    def find(mark: str) -> list[int]:
        parents: dict[int, int] = {}
        marked = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                try:
                    command = (folder / "cmdline").read_bytes()
                    state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                except OSError:
                    continue
                parents[int(folder.name)] = int(parent)
                if mark.encode() in command and state != "Z":
                    marked.append(int(folder.name))
        return [pid for pid in marked if is_below(pid, parents)]

    def is_below(pid: int, parents: dict[int, int]) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    return find
