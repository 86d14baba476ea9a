"""A disk that is full, at any write: one line, nothing believed that is half there, and it goes on.

The disk is a real one, a small file system in memory.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import SECONDS, assert_complete, processes_in, read_events, run, start
from disks import KIB, enlarge, fill, small_disk
from events import PLAIN

from engine.core import INITIAL, Evaluation, UserError
from engine.report.__main__ import main as report
from engine.store import EventLog, Verdict, read_log
from engine.timeline import TIMELINE

CANDIDATES = 40


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", kib=4 * KIB) as disk:
        yield disk


def only_line(err: str) -> str:
    """Return the one error of a run's standard error, which may hold what the run says besides."""
    assert "Traceback" not in err
    (line,) = (each for each in err.splitlines() if each.startswith("error: "))
    return line


def test_a_disk_that_fills_up_ends_a_run_which_goes_on_later(disk: Path, tmp_path: Path) -> None:
    scratch, folder = tmp_path / "scratch", disk / "run"
    arguments = (*PLAIN, f"budget.candidates={CANDIDATES}", "seed=1", "name=run")
    fill(disk, leave=400 * KIB)
    ended = run(*arguments, f"runs={disk}", scratch=scratch)
    assert ended.returncode == 2, ended.stderr
    line = only_line(ended.stderr)
    assert f"{folder / 'run.db'} can't be written: " in line and f"resume={folder}" in line
    assert processes_in(scratch) == [] and list(scratch.iterdir()) == []
    before = read_events(folder)
    assert 0 < len(before["verdict"]) < CANDIDATES
    enlarge(disk, kib=16 * KIB)
    resumed = run(f"resume={folder}", scratch=scratch)
    assert resumed.returncode == 0, resumed.stderr
    assert_complete(folder, candidates=CANDIDATES)
    assert read_events(folder)["verdict"][: len(before["verdict"])] == before["verdict"]


@pytest.mark.parametrize("leave", [0, 24 * KIB])
def test_a_run_that_has_no_room_to_begin_leaves_nothing(
    disk: Path, tmp_path: Path, leave: int
) -> None:
    filler = fill(disk, leave=leave)
    ended = run(
        *PLAIN, "budget.candidates=1", f"runs={disk / 'runs'}", scratch=tmp_path / "scratch"
    )
    assert ended.returncode == 2, ended.stderr
    assert str(disk / "runs") in only_line(ended.stderr)
    assert [*disk.rglob("*")] in ([filler], [disk / "runs", filler], [filler, disk / "runs"])


def test_a_full_folder_for_temporary_files_is_named(disk: Path, tmp_path: Path) -> None:
    fill(disk)
    process = start(
        *(*PLAIN, "budget.candidates=1", f"runs={tmp_path / 'runs'}"),
        scratch=disk,
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    _, said = process.communicate(timeout=SECONDS)
    assert process.returncode in (0, 2)
    assert process.returncode == 0 or "TMPDIR" in only_line(said) or "a sandbox" in only_line(said)


@pytest.mark.parametrize(
    ("leave", "words"),
    [
        (0, "run.db can't be read: disk I/O error; look at its disk: is it full?"),
        (32 * KIB, "summary.json can't be written: No space left"),  # what SQLite needs, no more
    ],
)
def test_results_that_have_no_room_are_written_later(
    recorded_run: Path, tmp_path: Path, disk: Path, leave: int, words: str
) -> None:
    folder = disk / "run"
    subprocess.run(["cp", "-a", str(recorded_run), str(folder)], check=True)
    (folder / "run.lock").touch()
    filler = fill(disk, leave=leave)
    ended = run(f"resume={folder}", scratch=tmp_path / "scratch")
    assert ended.returncode == 2, ended.stderr
    assert f"{folder}/{words}" in only_line(ended.stderr)
    assert not [*folder.glob("*.partial")] and not [*folder.glob(".*.partial")]
    filler.unlink()
    assert run(f"resume={folder}", scratch=tmp_path / "scratch").returncode == 0
    assert (folder / "summary.json").is_file() and (folder / "best.py").is_file()


def verdict(number: int, size: int) -> Verdict:
    evaluation = Evaluation(score=1.0, failure=None, artifacts={"stdout": "x" * size})
    return Verdict(candidate=f"0.{number}", evaluation=evaluation)


@pytest.mark.parametrize("leave", range(0, 120 * KIB, 12 * KIB))
def test_a_log_holds_what_was_committed_and_nothing_else(
    recorded_run: Path, disk: Path, leave: int
) -> None:
    folder = disk / "run"
    subprocess.run(["cp", "-a", str(recorded_run), str(folder)], check=True)
    committed = [INITIAL]
    with EventLog(folder) as log:
        filler = fill(disk, leave=leave)
        with pytest.raises(UserError, match=r"run\.db can't be written: .*resume="):
            for number in range(100):
                log.append(verdict(number, 3 * KIB))
                log.append(verdict(1000 + number, 3 * KIB))
                log.commit()
                committed += [f"0.{number}", f"0.{1000 + number}"]
        # As a reader sees it meanwhile, and after room was made.
        assert candidates(folder) == committed
        filler.unlink()
        log.append(verdict(5000, 10))
        log.commit()
    assert candidates(folder) == [*committed, "0.5000"]


def candidates(folder: Path) -> list[str]:
    events = (each.event for each in read_log(folder))
    return [event.candidate for event in events if isinstance(event, Verdict)]


def test_a_report_is_read_from_a_full_disk(
    recorded_run: Path, disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = disk / "run"
    subprocess.run(["cp", "-a", str(recorded_run), str(folder)], check=True)
    fill(disk)
    assert report([str(folder), "analysis=progress"]) == 0
    assert "0.5" in capsys.readouterr().out
    assert not (folder / TIMELINE).exists()
