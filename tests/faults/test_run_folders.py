"""Run folders that can't be written, are none, or go away while the run works on them."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from command import SECONDS, count_events, processes_in, run, start, wait_until
from disks import unwritable
from events import PLAIN

from engine.report.__main__ import main as report
from engine.store import EventLog, read_log
from engine.store.disk import network_kind, warn_of_network

ENDLESS = (*PLAIN, "budget.candidates=100000", "name=run")


def ended_by(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for a run's end; return its exit code and what it said on standard error."""
    try:
        _, said = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert "Traceback" not in said
    return process.returncode, said


def begun(tmp_path: Path) -> subprocess.Popen[str]:
    """Start a run in ``tmp_path / runs / run``, and wait until it is in its loop."""
    process = start(
        *(*ENDLESS, f"runs={tmp_path / 'runs'}"),
        scratch=tmp_path / "scratch",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    folder = tmp_path / "runs" / "run"
    wait_until(lambda: count_events(folder) >= 12 or process.poll() is not None)
    return process


def test_a_folder_that_is_removed_ends_its_run_with_a_line(tmp_path: Path) -> None:
    process = begun(tmp_path)
    shutil.rmtree(tmp_path / "runs")
    code, said = ended_by(process)
    assert code == 2
    assert f"{tmp_path / 'runs' / 'run' / 'run.db'} was removed or moved" in said
    assert not (tmp_path / "runs").exists()
    assert processes_in(tmp_path / "scratch") == []


def test_a_folder_that_is_moved_has_all_that_was_recorded(tmp_path: Path) -> None:
    process = begun(tmp_path)
    (tmp_path / "runs" / "run").rename(tmp_path / "elsewhere")
    code, said = ended_by(process)
    assert code == 2 and "go on with resume=FOLDER of where it is now" in said
    before = count_events(tmp_path / "elsewhere")
    again = start(
        f"resume={tmp_path / 'elsewhere'}",
        scratch=tmp_path / "scratch",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: count_events(tmp_path / "elsewhere") > before + 5)
    again.send_signal(signal.SIGTERM)
    assert ended_by(again)[0] == 130


@pytest.mark.parametrize("runs", ["file", "file/below", "unwritable/new"])
def test_a_place_for_runs_that_is_none_is_told_before_anything_starts(
    tmp_path: Path, runs: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "unwritable").mkdir()
    with unwritable(tmp_path / "unwritable"):
        done = run(*ENDLESS, f"runs={tmp_path / runs}", scratch=tmp_path / "scratch")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "can't be made; set runs=FOLDER" in done.stderr
    assert [*(tmp_path / "unwritable").iterdir()] == []


def test_a_run_that_may_not_be_written_is_read_and_not_resumed(
    recorded_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with unwritable(recorded_run):
        done = run(f"resume={recorded_run}", scratch=tmp_path / "scratch")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert f"{recorded_run} can't be written; copy it" in done.stderr
        assert report([str(recorded_run), "analysis=progress"]) == 0
    assert "0.5" in capsys.readouterr().out


def test_what_a_killed_run_left_is_read_where_nothing_may_be_written(tmp_path: Path) -> None:
    process = begun(tmp_path)
    process.kill()
    process.communicate()
    folder = tmp_path / "runs" / "run"
    assert (folder / "run.db-wal").stat().st_size > 0
    with unwritable(folder):
        whole = [*read_log(folder)]
    (folder / "run.db-shm").unlink()  # as where only the other two were copied
    with unwritable(folder):
        again = [*read_log(folder)]
    # The kill may have come when a transaction was in the log and not in the index of it.
    assert again[: len(whole)] == whole
    with EventLog(folder) as log:
        assert [*log.events()] == again


MOUNTS = """\
22 1 252:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
31 30 0:26 / /home/local\\040disk rw,relatime - xfs /dev/vdb rw
32 22 0:27 / /scratch rw,relatime - lustre 10.0.0.1@tcp:/scratch rw
33 22 0:28 / /mnt/cloud rw,relatime - fuse.gcsfuse bucket rw
34 22 0:29 / /srv rw,relatime - cifs //server/share rw
35 22 0:30 / /srv rw,relatime - tmpfs none rw
"""


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/runs", None),
        ("/home", "nfs4"),
        ("/home/me/runs/one", "nfs4"),
        ("/homeless/runs", None),
        ("/home/local disk/runs", None),
        ("/scratch/runs", "lustre"),
        ("/mnt/cloud/x", "fuse.gcsfuse"),
        ("/srv/x", None),  # the later one covers the other
    ],
)
def test_network_file_systems_are_known(tmp_path: Path, place: str, kind: str | None) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTS)
    assert network_kind(Path(place), mounts=tmp_path / "mountinfo") == kind


def test_a_local_file_system_is_not_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert network_kind(tmp_path) is None and network_kind(Path("/dev/shm/x")) is None
    warn_of_network(tmp_path / "not" / "there")
    assert caplog.text == ""
