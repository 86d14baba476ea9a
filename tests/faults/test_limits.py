"""Too few descriptors or processes for a run: one line that says what, and exit code 2."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import SECONDS, start
from events import PLAIN

ARGUMENTS = (*PLAIN, "budget.candidates=4", "name=run")


def last_line(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the end of a run; return its exit code and the last line that it said."""
    _, said = process.communicate(timeout=SECONDS)
    assert "Traceback" not in said
    return process.returncode, said.splitlines()[-1]


def begun(tmp_path: Path, limit: int, most: tuple[int, int]) -> subprocess.Popen[str]:
    return start(
        *(*ARGUMENTS, f"runs={tmp_path}"),
        scratch=tmp_path / "scratch",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(limit, most),
    )


def test_too_few_descriptors_are_named_at_the_start(tmp_path: Path) -> None:
    code, said = last_line(begun(tmp_path, resource.RLIMIT_NOFILE, (48, 48)))
    assert code == 2 and "may have 48 files open here, and evaluators need 256" in said
    assert not (tmp_path / "run").exists() and [*(tmp_path / "scratch").iterdir()] == []


def test_a_low_limit_that_may_be_raised_is_raised(tmp_path: Path) -> None:
    code, said = last_line(begun(tmp_path, resource.RLIMIT_NOFILE, (48, 4096)))
    assert code == 0, said


@pytest.mark.parametrize(
    ("most", "words"),
    [(1, "1 evaluation workers are too many"), (2, "evaluator: a sandbox did not start")],
)
def test_too_few_processes_are_named(tmp_path: Path, most: int, words: str) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None or shutil.which("prlimit") is None:
        pytest.skip("only root can be another user, and the limit does not hold for root")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for each in (tmp_path, scratch):
        each.chmod(0o777)
    # Another user who may read all files, since the interpreter may be root's own.
    rights = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    user = ("setpriv", "--reuid=61234", "--regid=61234", "--clear-groups", *rights)
    # NumPy's library ends in a traceback where it can't have its threads.
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = ("prlimit", f"--nproc={most}", sys.executable, "-m", "engine.run")
    process = subprocess.Popen(
        [*user, *command, *ARGUMENTS, f"runs={tmp_path}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=scratch,
        env={**os.environ, **one_thread, "TMPDIR": str(scratch), "HOME": str(scratch)},
    )
    code, said = last_line(process)
    assert code == 2 and said.startswith("error: ") and words in said
    assert "Resource temporarily unavailable" in said
    assert not (tmp_path / "run").exists() and [*scratch.iterdir()] == []
