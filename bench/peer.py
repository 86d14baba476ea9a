"""Other searches in environments of their own: makes those, and starts what runs in them.

Covers: a peer's environment, a folder that git ignores, ``.bench/PACKAGE``, made once from
``requirements/PACKAGE.txt`` and again when that file changes; OpenEvolve's evaluator as a helper
process (`start`, for ``bench.evaluation``); and whole searches (`search`, for ``bench.peers``).
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bench.guard import Guarded
from bench.lines import HelperProcess
from engine.core import UserError
from evaluators.signal.cases import signals

ROOT = Path(__file__).resolve().parents[1]
OPENEVOLVE = "openevolve"


@dataclass(frozen=True, kw_only=True, slots=True)
class Peer:
    """A search of others: the package that has it, and the file here that starts it there."""

    package: str
    side: str


PEERS = {
    "openevolve": Peer(package=OPENEVOLVE, side="openevolve_run_side.py"),
    "adaevolve": Peer(package="skydiscover", side="adaevolve_run_side.py"),
    "shinkaevolve": Peer(package="shinka-evolve", side="shinka_run_side.py"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchRequest:
    """What a peer's search is started with; the files ``*_run_side.py`` read it.

    Attributes:
        url: base URL of the model's OpenAI-compatible interface.
        model: the model's name there.
        max_tokens: of an answer.
        statement: the problem in words, which becomes the system message.
        program: file with the initial program.
        evaluator: the evaluation file.
        output: folder for what the peer writes.
        seed: the peer's ``random_seed``.
        workers: OpenEvolve's ``parallel_evaluations``, each of which generates and evaluates.
        iterations: after which the search ends by itself.
    """

    url: str
    model: str
    max_tokens: int
    statement: str
    program: str
    evaluator: str
    output: str
    seed: int
    workers: int
    iterations: int


def make_environment(package: str = OPENEVOLVE) -> Path:
    """Return the Python of a package's environment, which is made or mended first.

    Raises:
        UserError: it can't be made: no network, or no wheel for this Python.
    """
    requirements = ROOT / "requirements" / f"{package}.txt"
    environment = ROOT / ".bench" / package
    python = environment / "bin" / "python"
    stamp = environment / requirements.name
    wanted = requirements.read_text()
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(environment, ignore_errors=True)
    for command in _commands(environment, requirements):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            reason = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
            raise UserError(
                f"the environment {environment} can't be made: {reason[0].strip()}; "
                "the benchmarks run without it, see --help"
            )
    stamp.write_text(wanted)
    return python


def _commands(environment: Path, requirements: Path) -> list[list[str]]:
    python = environment / "bin" / "python"
    wanted = ["-r", str(requirements)]
    if importlib.util.find_spec("uv") is not None:
        # Without compiled files, every new interpreter would compile SciPy anew: pip makes them.
        uv = [sys.executable, "-m", "uv"]
        return [
            [*uv, "venv", "--python", sys.executable, str(environment)],
            [*uv, "pip", "install", "--compile-bytecode", "--python", str(python), *wanted],
        ]
    return [
        [sys.executable, "-m", "venv", str(environment)],
        [str(python), "-m", "pip", "install", *wanted],
    ]


def search(peer: Peer, python: Path, request: SearchRequest, *, folder: Path) -> Guarded:
    """Start a peer's whole search in ``folder``; the caller ends it.

    Everything that the peer writes, its temporary files included, comes to lie in ``folder``.
    """
    return Guarded(
        [str(python), str(ROOT / "bench" / peer.side), json.dumps(asdict(request))],
        environment={
            "TMPDIR": str(folder),
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
            "PYTHONUNBUFFERED": "1",
        },
        cwd=folder,
        log=folder / "peer.log",
        grace=1.0,  # nothing of it is kept
    )


def lay_out(folder: Path) -> Path:
    """Put the evaluation file and the five signals into ``folder``; return the file's path."""
    evaluator = Path(shutil.copy(ROOT / "bench" / "openevolve_evaluator.py", folder))
    arrays = {f"clean_{i}": given.clean for i, given in enumerate(signals())}
    arrays |= {f"noisy_{i}": given.noisy for i, given in enumerate(signals())}
    np.savez(folder / "signals.npz", allow_pickle=False, **arrays)
    return evaluator


def lay_out_judged(folder: Path) -> Path:
    """Put the evaluation file that asks `bench.judge.Judge` into ``folder``; return its path."""
    return Path(shutil.copy(ROOT / "bench" / "peer_evaluator.py", folder))


def start(python: Path, folder: Path) -> HelperProcess:
    """Start OpenEvolve's side, with its evaluation file in ``folder``."""
    side = ROOT / "bench" / "openevolve_side.py"
    # TMPDIR: OpenEvolve writes each program to a temporary file; after a kill some are left.
    return HelperProcess(
        [str(python), str(side), str(lay_out(folder))],
        environment={"TMPDIR": str(folder)},
        cwd=folder,
    )
