"""The tiny problem of these tests, and one pool for all hostile programs."""

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
    """Return a function that lists the living processes with a mark on their command line."""

    def find(mark: str) -> list[int]:
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                try:
                    command = (folder / "cmdline").read_bytes()
                    state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                except OSError:
                    continue
                if mark.encode() in command and state != "Z":
                    found.append(int(folder.name))
        return found

    return find
