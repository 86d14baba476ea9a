"""Runs without a model: the same seed leaves the same log, and so does a run that was killed.

Equal are all events with all they hold but measured seconds and memory. A later session adds its
own event, and so moves what calls ``know``, which is the number of the events before them.
"""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command import assert_complete, count_events, run, start, wait_until

CANDIDATES = 100
MEASURED = ("seconds", "llm_seconds", "peak_bytes")
PHASES = ("pipeline.overlap=false",)
OVERLAP = ("pipeline.speculate=false",)
Event = tuple[str, str, dict[str, Any]]


def arguments(folder: Path, *more: str) -> list[str]:
    return [
        *("problem=signal", "model=mutation", "seed=11", "evaluation.workers=1", "fill=none"),
        *(f"budget.candidates={CANDIDATES}", "budget.seconds=null"),
        *(f"runs={folder.parent}", f"name={folder.name}", *more),
    ]


def events(folder: Path) -> list[Event]:
    """Return a run's events in order, without what was measured."""
    found = []
    with sqlite3.connect(folder / "run.db") as db:
        for kind, subject, body in db.execute(
            "SELECT kind, subject, body FROM events ORDER BY seq"
        ):
            found.append((kind, subject, json.loads(body, object_hook=_without_what_was_measured)))
    return found


def _without_what_was_measured(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in MEASURED}


def decided(found: list[Event]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what the search did, in whatever order and sessions."""
    return {
        (kind, subject): {name: value for name, value in fields.items() if name != "known"}
        for kind, subject, fields in found
        if kind != "session"
    }


def finished(folder: Path, *more: str) -> list[Event]:
    done = run(*arguments(folder, *more), scratch=folder.parent / "scratch")
    assert done.returncode == 0, done.stderr
    assert_complete(folder, candidates=CANDIDATES)
    return events(folder)


@pytest.fixture(scope="module")
def in_phases(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    return finished(tmp_path_factory.mktemp("phases") / "run", *PHASES)


def test_the_same_seed_leaves_the_same_log(in_phases: list[Event], tmp_path: Path) -> None:
    verdicts = [fields["evaluation"] for kind, _, fields in in_phases if kind == "verdict"]
    assert len({each["score"] for each in verdicts}) > 10
    assert finished(tmp_path / "run", *PHASES) == in_phases


@pytest.mark.slow
def test_overlap_decides_the_same_with_one_island_and_evaluator(
    in_phases: list[Event], tmp_path: Path
) -> None:
    # A verdict may be in before the last of its siblings is parsed, so the order may differ.
    assert decided(finished(tmp_path / "run", *OVERLAP)) == decided(in_phases)


def test_guesses_change_no_child_and_no_verdict(in_phases: list[Event], tmp_path: Path) -> None:
    guessed = finished(tmp_path / "run", "pipeline.speculate=true")
    assert any(fields["guessed"] for kind, _, fields in guessed if kind == "call")
    for kind in ("child", "verdict"):
        each, same = (
            {key: fields for key, fields in decided(log).items() if key[0] == kind}
            for log in (guessed, in_phases)
        )
        assert each == same


@pytest.mark.parametrize(
    ("mode", "moments"),
    # In the first call's children, and among the verdicts of later ones.
    [
        pytest.param(PHASES, (7, 60), id="phases"),
        pytest.param(OVERLAP, (40,), id="overlap", marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_again_and_again_does_what_it_would_have_done(
    in_phases: list[Event], tmp_path: Path, mode: tuple[str, ...], moments: tuple[int, ...]
) -> None:
    assert decided(killed(tmp_path / "run", *mode, moments=moments)) == decided(in_phases)


def killed(folder: Path, *mode: str, moments: tuple[int, ...]) -> list[Event]:
    """Return the events of a run that was killed at these numbers of events."""
    scratch = folder.parent / "scratch"
    for moment in moments:
        begun = [f"resume={folder}"] if folder.exists() else arguments(folder, *mode)
        least = count_events(folder) + 2  # of this session: its own event, and another one
        process = start(
            *begun, scratch=scratch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        kill_at(process, folder, moment=max(moment, least))
    done = run(f"resume={folder}", scratch=scratch)
    assert done.returncode == 0, done.stderr
    assert_complete(folder, candidates=CANDIDATES)
    found = events(folder)
    assert sum(kind == "session" for kind, _, _ in found) == len(moments) + 1
    return found


def kill_at(process: subprocess.Popen[str], folder: Path, *, moment: int) -> None:
    """Kill a run as soon as there are ``moment`` events in its log."""
    wait_until(lambda: count_events(folder) >= moment or process.poll() is not None, pause=0.005)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "the run ended before it was killed"
