"""``kill -9`` at random moments: nothing lost, nothing doubled, the same run in the end.

The run is real: its process, its sandboxes and its log. Only the imports are made once: a process
that has made them forks the one that runs. ``tests/test_resume.py`` does the same with whole
commands and the embedded model.

One run is killed up to twenty times: it may be over before. With ``BROOD_KILLED_RUNS=5`` there are
five of them.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command import assert_complete, count_events, processes_in, read_events, run, wait_until
from events import PLAIN, assert_same_run, plain_events

FOLDERS = int(os.environ.get("BROOD_KILLED_RUNS", "1"))
KILLS, CANDIDATES = 20, 200
FORKER = """
import os, signal, sys
from engine.run import main
print("ready", flush=True)
while line := sys.stdin.readline():
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        os._exit(main(line.split()))
    sys.stdin.readline()
    os.kill(child, signal.SIGKILL)  # nobody waited for it, so the number is its own
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Forker:
    """Starts runs that need no import, and kills them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, *arguments: str) -> None:
        """Start a run."""
        self._say(" ".join(arguments))

    def kill(self) -> int:
        """Kill the run's main process; return its exit code, which another end may have given."""
        self._say("kill")
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


@contextmanager
def forker(scratch: Path) -> Iterator[Forker]:
    scratch.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", FORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    with process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        try:
            yield Forker(process)
        finally:
            process.kill()


def wait_for_a_moment(folder: Path, rng: random.Random) -> None:
    """Wait for some events and up to 0.2 s, or, one time in four, for up to 3 s: it may begin."""
    if rng.random() < 0.25:
        time.sleep(rng.uniform(0.0, 3.0))
        return
    wanted, deadline = count_events(folder) + rng.randrange(1, 12), time.monotonic() + 30.0
    while count_events(folder) < wanted and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(rng.uniform(0.0, 0.2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FOLDERS))
def test_a_run_killed_twenty_times_is_the_run_that_nobody_killed(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    arguments = (*PLAIN, f"budget.candidates={CANDIDATES}", f"seed={seed}", "name=run")
    folder, scratch = tmp_path / "killed" / "run", tmp_path / "scratch"
    before: list[object] = []
    with forker(scratch) as forked:
        for _ in range(KILLS):
            begin = (*arguments, f"runs={folder.parent}")
            forked.start(*([f"resume={folder}"] if folder.exists() else begin))
            wait_for_a_moment(folder, rng)
            code = forked.kill()
            assert code in (-signal.SIGKILL, 0)
            if folder.exists():
                verdicts = read_events(folder)["verdict"]
                assert verdicts[: len(before)] == before
                before = [*verdicts]
    wait_until(lambda: not processes_in(scratch))
    assert run(f"resume={folder}", scratch=scratch).returncode == 0
    assert_complete(folder, candidates=CANDIDATES)
    undisturbed = run(*arguments, f"runs={tmp_path}", scratch=scratch)
    assert undisturbed.returncode == 0, undisturbed.stderr
    # Looked at only now: whoever starts evaluators removes what killed runs left, and the last kill
    # may have come when nothing was left to be evaluated.
    assert [*scratch.iterdir()] == []
    assert_same_run(plain_events(folder), plain_events(tmp_path / "run"))
