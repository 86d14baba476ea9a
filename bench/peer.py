"""OpenEvolve as a helper process: makes its environment, lays out its evaluation file, starts it.

The environment is a folder that git ignores, ``.bench/openevolve``, made once from
``requirements/openevolve.txt`` and again when that file changes.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from bench.lines import HelperProcess
from engine.core import UserError
from kernels.signal_cases import signals

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "requirements" / "openevolve.txt"
ENVIRONMENT = ROOT / ".bench" / "openevolve"


def make_environment() -> Path:
    """Return the Python of OpenEvolve's environment, which is made or mended first.

    Raises:
        UserError: it can't be made: no network, or no wheel for this Python.
    """
    python = ENVIRONMENT / "bin" / "python"
    stamp = ENVIRONMENT / REQUIREMENTS.name
    wanted = REQUIREMENTS.read_text()
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    for command in _commands(python):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            reason = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
            raise UserError(
                f"OpenEvolve's environment {ENVIRONMENT} can't be made: {reason[0].strip()}; "
                f"leave it out with openevolve=false"
            )
    stamp.write_text(wanted)
    return python


def _commands(python: Path) -> list[list[str]]:
    wanted = ["-r", str(REQUIREMENTS)]
    if importlib.util.find_spec("uv") is not None:
        # Without compiled files, every new interpreter would compile SciPy anew: pip makes them.
        uv = [sys.executable, "-m", "uv"]
        return [
            [*uv, "venv", "--python", sys.executable, str(ENVIRONMENT)],
            [*uv, "pip", "install", "--compile-bytecode", "--python", str(python), *wanted],
        ]
    return [
        [sys.executable, "-m", "venv", str(ENVIRONMENT)],
        [str(python), "-m", "pip", "install", *wanted],
    ]


def lay_out(folder: Path) -> Path:
    """Put the evaluation file and the five signals into ``folder``; return the file's path."""
    evaluator = Path(shutil.copy(ROOT / "bench" / "openevolve_evaluator.py", folder))
    arrays = {f"clean_{i}": given.clean for i, given in enumerate(signals())}
    arrays |= {f"noisy_{i}": given.noisy for i, given in enumerate(signals())}
    np.savez(folder / "signals.npz", allow_pickle=False, **arrays)
    return evaluator


def start(python: Path, folder: Path) -> HelperProcess:
    """Start OpenEvolve's side, with its evaluation file in ``folder``."""
    side = ROOT / "bench" / "openevolve_side.py"
    # TMPDIR: OpenEvolve writes each program to a temporary file; after a kill some are left.
    return HelperProcess(
        [str(python), str(side), str(lay_out(folder))],
        environment={"TMPDIR": str(folder)},
        cwd=folder,
    )
