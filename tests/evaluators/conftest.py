"""Runs whole programs on a problem's cases, in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.core import Outputs, Problem

CALIBRATION = Path(__file__).parent / "calibration"
Run = Callable[[str, Problem], list[Outputs]]


@pytest.fixture(scope="session")
def run() -> Run:
    """Return a function that runs a program's text on each case, from a fresh start."""

    def run_program(program: str, problem: Problem) -> list[Outputs]:
        outputs = []
        for case in problem.cases:
            names: dict[str, object] = {}
            exec(compile(program, "program.py", "exec"), names)
            entry_point = names[problem.entry_point]
            assert callable(entry_point)
            args = [np.array(a) if isinstance(a, np.ndarray) else a for a in case.args]
            returned = entry_point(*args, **case.kwargs)
            outputs.append({name: np.asarray(returned[name], float) for name in case.outputs})
        return outputs

    return run_program


@pytest.fixture(scope="session")
def calibration() -> Callable[[str], str]:
    """Return a function that reads a calibration program by its name."""
    return lambda name: (CALIBRATION / f"{name}.py").read_text()
