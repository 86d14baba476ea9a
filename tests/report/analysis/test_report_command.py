"""``python -m engine.report`` on real folders: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hand_log import FIRST_SESSION, SECOND_SESSION

from engine.problem import shipped
from engine.report.__main__ import main
from engine.report.analysis import ANALYSES
from engine.store import Call, Event, EventLog, Session

REST = tuple(
    replace(event, shown=("1.1",)) if isinstance(event, Call) else event
    for event in (*FIRST_SESSION[2:], *SECOND_SESSION)
)


@pytest.fixture
def run(recorded_run: Path) -> Path:
    """The run of ``hand_log.py`` as a folder, all of it in one second."""
    with EventLog(recorded_run, session=0) as log:
        write(log, *REST)
    return recorded_run


def write(log: EventLog, *events: Event) -> None:
    for event in events:
        if not isinstance(event, Session):
            log.append(event)
    log.commit()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line with which arguments are refused."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1, err
    return err


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ANALYSES)
def test_each_analysis_prints_tables_writes_numbers_and_leaves_the_run_alone(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    before = files(run)
    assert main([str(run), f"analysis={name}", f"json={tmp_path / 'all.json'}"]) == 0
    assert files(run) == before
    out, err = capsys.readouterr()
    assert err == "" and out.count("\n") >= 3 and "\x1b" not in out
    written = json.loads((tmp_path / "all.json").read_text())
    assert (written["analysis"], written["runs"]) == (name, [str(run)])
    assert written["figures"]
    assert [path.name for path in tmp_path.iterdir()] != ["all.json"]  # the run is there too
    assert not list(tmp_path.glob(".*partial"))


def test_the_replay_shows_as_many_programs_as_asked_for(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run), "analysis=replay", "top=1"]) == 0
    assert capsys.readouterr().out.count(f"  {run}") == 1
    assert main([str(run), "analysis=replay"]) == 0
    assert capsys.readouterr().out.count(f"  {run}") == 4


def test_a_run_that_goes_on_is_read_as_it_stands(
    recorded_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "out.json"
    with EventLog(recorded_run, session=0) as log:
        for part, evaluated in ((REST[:4], 1), (REST[4:], 5)):
            write(log, *part)
            assert main([str(recorded_run), "analysis=progress", f"json={written}"]) == 0
            (end,) = json.loads(written.read_text())["figures"]["ends"]
            assert end["candidates"] == evaluated
    assert capsys.readouterr().err == ""


def test_several_runs_of_a_problem_are_put_together(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "runs" / "search.k=1_seed=0"  # as sweeps name them
    shutil.copytree(run, other)
    assert main([str(run), "analysis=operators", str(other)]) == 0
    assert "infill           6" in capsys.readouterr().out


def test_the_module_runs_as_a_command(run: Path) -> None:
    command = [sys.executable, "-m", "engine.report"]
    done = subprocess.run(
        [*command, str(run), "analysis=ranks"], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Place among the children of a call\n")
    done = subprocess.run([*command, "x"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: give analysis=NAME; valid: progress, replay, ")


def test_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f" {name} " in out or f"={name} " in out for name in ANALYSES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["RUN"], "give analysis=NAME; valid: progress, replay"),
        (["analysis=progress"], "give at least one run's folder"),
        (["RUN", "analysis=progres"], "unknown analysis 'progres'; valid: progress, replay"),
        (["RUN", "analysis="], "unknown analysis ''; valid"),
        (["RUN", "analysis=ranks", "analysis=ranks"], "analysis= is given twice"),
        (["RUN", "RUN", "analysis=ranks"], "is given twice; a run counts once"),
        (["RUN", "RUN/../recorded", "analysis=ranks"], "is given twice"),
        (["/no/such/run", "analysis=ranks"], "/no/such/run is not a run: it has no run.db"),
        (["RUN", "analysis=ranks", "tip=3"], "tip=3 is not a run: it has no run.db"),
        (["RUN", "analysis=replay", "top=0"], "top is '0'; it must be a whole number above 0"),
        (["RUN", "analysis=replay", "top=2.5"], "top is '2.5'; it must be"),
        (["RUN", "analysis=replay", "top=²"], "top is '²'; it must be"),
        (["RUN", "analysis=ranks", "json="], "json is ''; it must be a file"),
        (["RUN", "analysis=ranks", "json=/no/such/x"], "/no/such/x can't be written: No"),
        (["RUN", "analysis=ranks", "json=RUN/run.db/x"], "run.db/x can't be written: Not a dir"),
        (["RUN", "analysis=ranks", f"json=RUN/{'x' * 300}"], "can't be written: File name too"),
        (["RUN", "analysis=ranks", "json=RUN"], "can't be written: Is a directory"),
    ],
)
def test_bad_arguments_are_named(
    run: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    before = files(run)
    given = [argument.replace("RUN", str(run)) for argument in arguments]
    assert words in refused(capsys, *given)
    assert files(run) == before
    assert not list(run.parent.glob(".*"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE events SET body = 'x' WHERE kind = 'verdict'", "run.db is damaged"),
        ("UPDATE events SET kind = 'some' WHERE kind = 'child'", "run.db is damaged"),
        ("DELETE FROM events", "log is damaged: it has no beginning"),
        ("DELETE FROM events WHERE subject = 'initial'", "child 0.0 has no call, or no parent"),
        ("DELETE FROM events WHERE kind = 'call' AND subject = '1'", "child 1.0 has no call"),
        ("DELETE FROM events WHERE kind = 'child' AND subject = '1.1'", "nobody made candidate"),
        (
            "UPDATE events SET body = json_set(body, '$.parent', '1.0') "
            "WHERE kind = 'child' AND subject = '1.0'",
            "child 1.0 has no call, or no parent with a score",
        ),
        (
            "UPDATE events SET body = json_set(body, '$.score', 'x') WHERE kind = 'verdict'",
            "is dam",
        ),
        ("DROP TABLE events", "is not the log of a run"),
        ("PRAGMA user_version = 99", "schema 99"),
    ],
)
@pytest.mark.parametrize("name", ["progress", "replay"])
def test_a_damaged_log_is_refused(
    run: Path, capsys: pytest.CaptureFixture[str], change: str, words: str, name: str
) -> None:
    db = sqlite3.connect(run / "run.db")
    db.executescript(change)
    db.close()
    assert words in refused(capsys, str(run), f"analysis={name}")


def test_a_log_that_is_cut_off_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / "run.db"
    path.write_bytes(path.read_bytes()[:5000])
    assert "run.db" in refused(capsys, str(run), "analysis=ranks")
    path.write_bytes(b"nothing of the kind " * 500)
    assert "run.db is not the log of a run" in refused(capsys, str(run), "analysis=ranks")


def test_settings_that_cannot_be_read_are_refused(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = run / "config.yaml"
    settings = yaml.safe_load(config.read_text())
    config.write_text(yaml.safe_dump({**settings, "problem": "/no/such/problem"}))
    assert "/no/such/problem: the problem's folder is gone" in refused(
        capsys, str(run), "analysis=ranks"
    )
    config.write_text("a: [")
    assert "can't be read as a run's settings" in refused(capsys, str(run), "analysis=ranks")
    config.unlink()
    assert "it has no config.yaml" in refused(capsys, str(run), "analysis=ranks")


def test_runs_of_different_problems_are_not_put_together(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(run, other)
    config = other / "config.yaml"
    settings = yaml.safe_load(config.read_text())
    problem = str(shipped()["circle_packing"])
    config.write_text(yaml.safe_dump({**settings, "problem": problem}))
    change = "UPDATE events SET body = json_set(body, '$.fingerprint', 'g') WHERE kind = 'session'"
    db = sqlite3.connect(other / "run.db")
    db.executescript(change)
    db.close()
    words = "are of different problems (signal, circle_packing)"
    assert words in refused(capsys, str(run), str(other), "analysis=progress")
