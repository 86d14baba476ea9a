"""``kill -9`` at any moment: no evaluated candidate is lost, none is repeated, nothing is left."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command import (
    assert_complete,
    count_events,
    processes_in,
    read_events,
    run,
    start,
    wait_until,
)

LOADING_SECONDS = 8.0
"""A command that was started this long ago has most likely not begun to generate yet."""


class Killer:
    """Starts a run over and over, and kills its main process at moments chosen by ``seed``."""

    def __init__(self, *, folder: Path, scratch: Path, first: list[str], seed: int) -> None:
        self._folder = folder
        self._scratch = scratch
        self._first = first
        self._rng = random.Random(seed)

    def while_loading(self) -> None:
        """Kill it before it generates anything, perhaps before it has a folder."""
        process = self._start()
        time.sleep(self._rng.uniform(0.1, LOADING_SECONDS))
        self._kill(process)

    def in_the_loop(self, *, most_events: int) -> None:
        """Kill it after up to ``most_events`` new events, and up to 0.3 s."""
        process = self._start()
        wanted = count_events(self._folder) + self._rng.randrange(2, most_events)
        wait_until(
            lambda: count_events(self._folder) >= wanted or process.poll() is not None, pause=0.005
        )
        time.sleep(self._rng.uniform(0.0, 0.3))
        self._kill(process)

    def _start(self) -> subprocess.Popen[str]:
        begun = self._folder.exists()
        arguments = [f"resume={self._folder}"] if begun else self._first
        return start(
            *arguments,
            scratch=self._scratch,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _kill(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        assert process.wait() == -signal.SIGKILL, "the run ended before it was killed"
        wait_until(lambda: not processes_in(self._scratch))


def arguments(tmp_path: Path, *, candidates: int) -> list[str]:
    return [
        *(f"budget.candidates={candidates}", "seed=5", f"runs={tmp_path}", "name=killed"),
        *("islands.count=2", "pipeline.speculate=true"),
    ]


def assert_goes_on_to_the_end(tmp_path: Path, *, candidates: int) -> None:
    folder = tmp_path / "killed"
    before = read_events(folder)
    done = run(f"resume={folder}", scratch=tmp_path / "scratch")
    assert done.returncode == 0, done.stderr
    assert_complete(folder, candidates=candidates)
    after = read_events(folder)
    for kind in ("call", "child", "verdict"):
        assert after[kind][: len(before[kind])] == before[kind]
    assert [session["number"] for session in after["session"]] == [*range(len(after["session"]))]


@pytest.mark.slow
def test_a_run_killed_six_times_reaches_its_budget_exactly(tmp_path: Path) -> None:
    killer = Killer(
        folder=tmp_path / "killed",
        scratch=tmp_path / "scratch",
        first=arguments(tmp_path, candidates=100),
        seed=1,
    )
    killer.while_loading()
    for number in range(5):
        if number == 2:
            killer.while_loading()
        else:
            killer.in_the_loop(most_events=30)
    # Four of them came in the loop, behind two new events: the session's own, and another one.
    assert len(read_events(tmp_path / "killed")["session"]) >= 4
    assert_goes_on_to_the_end(tmp_path, candidates=100)


def test_resuming_a_run_that_spent_its_budget_changes_nothing(
    recorded_run: Path, tmp_path: Path
) -> None:
    before = read_events(recorded_run)
    done = run(f"resume={recorded_run}", scratch=tmp_path / "scratch")
    assert done.returncode == 0, done.stderr
    assert "Best score" in done.stdout
    assert read_events(recorded_run) == before
    assert (recorded_run / "best.py").is_file()
