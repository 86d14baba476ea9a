"""``python -m engine.report`` with html=, images= and data=: what is written and what refused."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest
import yaml
from hand_log import FIRST_SESSION, SECOND_SESSION

from engine.report.__main__ import main
from engine.report.tables import TABLES
from engine.store import EventLog, Session
from engine.timeline import TIMELINE, Activity, Timeline


@pytest.fixture
def run(recorded_run: Path) -> Path:
    """The run of ``hand_log.py`` as a folder, with a timeline."""
    with EventLog(recorded_run, session=0) as log:
        for event in (*FIRST_SESSION[2:], *SECOND_SESSION):
            if not isinstance(event, Session):
                log.append(event)
        log.commit()
    moments = iter(range(0, 10**12, 10**9))
    with Timeline(recorded_run / TIMELINE, clock=lambda: next(moments)) as timeline:
        evaluator = timeline.evaluator(0)
        with timeline.model.begin(Activity.STEP), evaluator.begin(Activity.EVALUATE):
            pass
    return recorded_run


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1, err
    return err


def test_all_kinds_of_reports_are_written_and_the_run_is_left_alone(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    page, images, data = (tmp_path / name for name in ("report.html", "a/images", "data"))
    assert main([str(run), f"html={page}", f"images={images}", f"data={data}"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.count("\n") == 3 and str(page) in out
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and "signal: 1 run" in text
    assert 'id="run0-busy"' in text and "Who used the time" in text
    names = {path.stem for path in images.glob("*.png")}
    assert names == {path.stem for path in images.glob("*.svg")} and "lineage" in names
    assert (images / "lineage.png").read_bytes().startswith(b"\x89PNG")
    assert (images / "lineage.svg").read_text().startswith("<svg")
    assert not list(tmp_path.rglob("*.partial"))


def test_data_are_whole_and_read_back(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run), f"data={tmp_path}"]) == 0
    written = {path.stem for path in tmp_path.glob("*.parquet")}
    assert written == {path.stem for path in tmp_path.glob("*.csv")}
    assert written == {*TABLES} - {"archive", "updates", "ideas", "settings"}
    programs = pyarrow.parquet.read_table(tmp_path / "programs.parquet").to_pylist()
    assert [row["id"] for row in programs][:3] == ["initial", "0.0", "0.1"]
    assert programs[4]["program"] == "x\n" and programs[4]["score"] == 0.9
    assert json.loads(programs[0]["metrics"]) == {"score": 0.5}
    assert {row["run"] for row in programs} == {"recorded"}
    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    text = pyarrow.csv.read_csv(tmp_path / "programs.csv", parse_options=options).to_pylist()
    assert [row["program"] for row in text] == [row["program"] or "" for row in programs]
    (busy, *_) = pyarrow.parquet.read_table(tmp_path / "busy.parquet").to_pylist()
    assert set(busy) == {"run", "since", "until", "model", "evaluators"}


def test_several_runs_have_their_names_in_the_names_of_images(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = [tmp_path / "x" / "search.k=1 seed=é", tmp_path / "y" / "recorded"]
    for other in others:
        shutil.copytree(run, other)
    settings = yaml.safe_load((others[0] / "config.yaml").read_text())
    (others[0] / "config.yaml").write_text(yaml.safe_dump({**settings, "seed": 7}))
    images = tmp_path / "images"
    assert main([str(run), *map(str, others), f"images={images}", "analysis=progress"]) == 0
    names = [path.stem for path in images.glob("*.png")]
    assert "comparison" in names and "search.k=1_seed=e-lineage" in names
    assert sum(name.endswith("-lineage") for name in names) == 3
    assert "Best score so far" in capsys.readouterr().out


def test_a_run_that_goes_on_has_a_report(
    recorded_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    with EventLog(recorded_run, session=0) as log:
        for event in FIRST_SESSION[2:6]:
            log.append(event)
            log.commit()
            assert main([str(recorded_run), f"html={page}"]) == 0
    assert "0.0" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["RUN"], "or html=FILE, images=FOLDER, data=FOLDER"),
        (["RUN", "html="], "html is ''; it must be a file"),
        (["RUN", "html=/"], "html is '/'; it must be a file"),
        (["RUN", "images="], "images is ''; it must be a folder"),
        (["RUN", "data="], "data is ''; it must be a folder"),
        (["RUN", "html=/no/such/x"], "/no/such/x can't be written: No such file"),
        (["RUN", "html=RUN"], "can't be written: Is a directory"),
        (["RUN", "images=RUN/run.db"], "run.db can't be made: File exists"),
        (["RUN", "data=RUN/run.db/x"], "run.db/x can't be made: Not a directory"),
        (["RUN", "html=x.html", "json=x"], "give analysis=NAME too"),
        (["/no/such/run", "html=x.html"], "/no/such/run is not a run"),
        (["html=x.html"], "give at least one run's folder"),
    ],
)
def test_bad_arguments_are_named_and_leave_nothing(
    run: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(run.parent)
    before = sorted(path.name for path in run.parent.rglob("*"))
    assert words in refused(capsys, *(each.replace("RUN", str(run)) for each in arguments))
    assert sorted(path.name for path in run.parent.rglob("*")) == before


@pytest.mark.parametrize("key", ["html", "images"])
def test_a_missing_library_is_one_line(
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    key: str,
) -> None:
    for name in [name for name in sys.modules if name.startswith("engine.report.")]:
        if name.startswith(("engine.report.page", "engine.report.figures")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.setitem(sys.modules, "altair", None)
    err = refused(capsys, str(run), f"{key}={tmp_path / 'x'}")
    assert f"{key}= needs " in err and "which is not installed" in err
    assert not (tmp_path / "x").exists()
