"""Runs whole programs on a problem's cases, in this process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from engine.core import Outputs, Problem
from engine.core.bundle import files_of, is_bundle

CALIBRATION = Path(__file__).parent / "calibration"
Run = Callable[[str, Problem], list[Outputs]]


@contextmanager
def opened(program: str, entry_point: str) -> Iterator[Callable[..., Any]]:
    """Give the entry point of a program; one file of its own takes the place of several."""
    *module, function = entry_point.split(".")
    if not is_bundle(program):
        names: dict[str, Any] = {}
        exec(compile(program, "program.py", "exec"), names)
        yield names[function]
        return
    files = files_of(program)
    with TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        try:
            yield getattr(importlib.import_module(".".join(module)), function)
        finally:
            sys.path.remove(folder)
            for name in files:
                sys.modules.pop(Path(name).stem, None)


@pytest.fixture(scope="session")
def run() -> Run:
    """Return a function that runs a program's text on each case, from a fresh start."""

    def run_program(program: str, problem: Problem) -> list[Outputs]:
        outputs = []
        for case in problem.cases:
            args = [np.array(a) if isinstance(a, np.ndarray) else a for a in case.args]
            with opened(program, problem.entry_point) as entry_point:
                returned = entry_point(*args, **case.kwargs)
            outputs.append({name: np.asarray(returned[name], float) for name in case.outputs})
        return outputs

    return run_program


@pytest.fixture(scope="session")
def calibration() -> Callable[[str], str]:
    """Return a function that reads a calibration program by its name."""
    return lambda name: (CALIBRATION / f"{name}.py").read_text()
