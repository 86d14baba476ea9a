"""Watching runs: only what is new is read, and what a folder holds never ends the page."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hand_log import recorded, with_others
from served import SECONDS, hand_folder

from engine.core import INITIAL, UserError
from engine.dashboard import WatchedRuns
from engine.dashboard.run import WatchedRun
from engine.problem import shipped
from engine.report.analysis import read_runs
from engine.report.figures import Aims, figures_of
from engine.report.tables import overview
from engine.report.tables.programs import of_run
from engine.steering import Request, leave
from engine.store import Child, Event, EventLog, Hint, Session, Verdict

FAR = float("inf")


def written(log: EventLog, *events: Event) -> None:
    for event in events:
        log.append(event)
    log.commit()


def wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_it_knows_is_what_the_report_says(tmp_path: Path) -> None:
    events = with_others()
    folder = hand_folder(tmp_path / "a", "search.archive=structure", events=events)
    run = WatchedRun("a", folder)
    run.refresh(deadline=FAR)
    (whole,) = read_runs([tmp_path / "a"])
    (row,) = overview([whole]).rows
    assert {**row, **run.facts()} == {
        **row,
        **run.facts(),
        **{k: row[k] for k in row if k != "run"},
    }
    assert run.growing is not None
    record = run.growing.record()
    assert record.bests == whole.bests and record.totals == whole.totals and record.at == whole.at
    for ours, theirs in zip(of_run(record), of_run(whole), strict=True):
        text = theirs.pop("program")
        assert (ours.pop("program") is None) == (text is None)
        assert ours == theirs
        if text is not None:
            assert run.program(ours)["text"] == text
    assert {run.growing.history.program_of(each) for each in ("1.1", "f0", "i2.4.0")} == {""}
    ours, theirs = (figures_of(each, aims=Aims()) for each in (record, whole))
    assert [each.data for each in ours] == [each.data for each in theirs]


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    events = recorded()
    folder = hand_folder(tmp_path / "a", events=events[:6])
    run = WatchedRun("a", folder)
    run.refresh(deadline=FAR)
    assert run.facts()["candidates"] == 1 and run.state == "stopped" and run.changes == 1
    run.refresh(deadline=FAR)
    assert run.changes == 1
    with EventLog(folder, session=0) as log:
        written(log, *(each.event for each in events[6:14]))
        run.refresh(deadline=FAR)
        assert run.facts()["candidates"] == 4 and run.state == "running"
        written(log, Hint(number=0, text="<b>median</b>"))
        run.refresh(deadline=FAR)
        assert run.hint == "<b>median</b>" and run.changes == 3
        leave(folder, Request(kind="pause"))  # only the run's process says that it is paused
        run.refresh(deadline=FAR)
        assert run.state == "running"
        (folder / "steering" / "paused").touch()
        run.refresh(deadline=FAR)
        assert run.state == "paused"
    run.refresh(deadline=FAR)
    assert run.state == "stopped"
    assert run.growing is not None and run.growing.history.events == 15


def test_a_long_log_is_read_piece_by_piece(tmp_path: Path) -> None:
    run = WatchedRun("a", hand_folder(tmp_path / "a"))
    run.refresh(deadline=0.0)  # no time at all
    assert run.facts()["reading"] and "candidates" not in run.facts()
    run.refresh(deadline=FAR)
    assert not run.facts()["reading"]


def test_a_run_that_takes_another_ones_place_is_read_anew(tmp_path: Path) -> None:
    folder = hand_folder(tmp_path / "a")
    run = WatchedRun("a", folder)
    run.refresh(deadline=FAR)
    assert run.facts()["candidates"] == 5
    folder.rename(tmp_path / "old")
    hand_folder(folder, events=recorded()[:6])
    run.refresh(deadline=FAR)
    assert run.facts()["candidates"] == 1


def test_a_run_whose_budget_is_spent_is_over(tmp_path: Path) -> None:
    of_events = WatchedRun("a", hand_folder(tmp_path / "a", "budget.candidates=1"))
    of_clock = WatchedRun("b", hand_folder(tmp_path / "b"))
    (tmp_path / "b" / "summary.json").write_text('{"ended_by": "seconds"}')
    for run in (of_events, of_clock):
        run.refresh(deadline=FAR)
        assert run.state == "over"


def test_what_cannot_be_read_is_told_in_its_row(tmp_path: Path) -> None:
    for name in ("log", "settings", "problem", "gone"):
        hand_folder(tmp_path / name)
    (tmp_path / "log" / "run.db").write_bytes(b"SQLite format 3\0" + bytes(1000))
    (tmp_path / "settings" / "config.yaml").write_text("problem: [")
    text = (tmp_path / "problem" / "config.yaml").read_text()
    (tmp_path / "problem" / "config.yaml").write_text(text.replace("signal", "nowhere"))
    hand_folder(tmp_path / "fine")
    runs = WatchedRuns(tmp_path)
    shutil.rmtree(tmp_path / "gone")
    found = runs.refresh()
    assert [*found] == ["fine", "log", "problem", "settings"]
    for run in found.values():
        run.refresh(deadline=FAR)
    assert {name for name, run in found.items() if run.state == "unreadable"} == {
        *("log", "settings", "problem")
    }
    assert all(run.error for run in found.values() if run.state == "unreadable")
    assert found["fine"].facts()["candidates"] == 5


def test_a_run_whose_problem_was_away_is_read_once_that_is_back(tmp_path: Path) -> None:
    problem, away = tmp_path / "problem", tmp_path / "away"
    shutil.copytree(shipped()["signal"], problem)
    run = WatchedRun("a", hand_folder(tmp_path / "a", f"problem.path={problem}"))
    problem.rename(away)
    run.refresh(deadline=FAR)
    assert run.state == "unreadable"
    away.rename(problem)  # which leaves the log as it was

    def is_read() -> bool:  # not at once, for it rests
        run.refresh(deadline=FAR)
        return not run.error

    wait(is_read)
    assert run.facts()["candidates"] == 5


def test_a_log_that_breaks_meanwhile_is_told_too(tmp_path: Path) -> None:
    folder = hand_folder(tmp_path / "a")
    run = WatchedRun("a", folder)
    run.refresh(deadline=FAR)
    with EventLog(folder) as log:
        written(log, Verdict(candidate="9.9", evaluation=recorded()[1].event.evaluation))
        run.refresh(deadline=FAR)
    assert run.state == "unreadable" and "9.9" in run.error


def test_a_problem_that_breaks_meanwhile_is_told_beside_the_figures(tmp_path: Path) -> None:
    problem = tmp_path / "problem"
    shutil.copytree(shipped()["signal"], problem)
    hand_folder(tmp_path / "runs" / "a", f"problem.path={problem}")
    runs = WatchedRuns(tmp_path / "runs")
    run = runs.refresh()["a"]
    run.refresh(deadline=FAR)
    declared = (problem / "problem.yaml").read_text()
    (problem / "problem.yaml").write_text("direction: [")
    broken = runs.snapshot(run)
    assert broken is not None and broken.figures
    assert f"{problem / 'problem.yaml'}:" in run.facts()["error"] and run.state == "stopped"
    (problem / "problem.yaml").write_text(declared)

    def is_whole() -> bool:  # not at once, for figures rest
        runs.snapshot(run)
        return not run.facts()["error"]

    wait(is_whole)


def test_a_timeline_that_breaks_meanwhile_is_told_in_place_of_the_figures(tmp_path: Path) -> None:
    folder = hand_folder(tmp_path / "a")
    (folder / "timeline.json").mkdir()
    runs = WatchedRuns(tmp_path)
    run = runs.refresh()["a"]
    run.refresh(deadline=FAR)
    snapshot = runs.snapshot(run)
    assert snapshot is not None and not snapshot.figures and snapshot.programs
    assert "timeline.json can't be read: Is a directory" in run.facts()["error"]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("nonsense\n", "run.url is damaged: it names no server and schema"),
        ("postgresql://nobody@127.0.0.1:1/brood#a\n", "127.0.0.1:1/brood#a can't be opened"),
    ],
    ids=("damaged", "away"),
)
def test_a_run_whose_server_cannot_be_asked_is_told_in_its_row(
    tmp_path: Path, address: str, said: str
) -> None:
    hand_folder(tmp_path / "a")
    (hand_folder(tmp_path / "b") / "run.url").write_text(address)
    found = WatchedRuns(tmp_path).refresh()
    for run in found.values():
        run.refresh(deadline=FAR)
    other, run = found["a"], found["b"]
    assert other.facts()["candidates"] == 5
    assert run.state == "unreadable" and said in run.facts()["error"]
    (run.folder / "run.url").unlink()  # its log lies in run.db then

    def is_read() -> bool:  # not at once, for it rests
        run.refresh(deadline=FAR)
        return not run.error

    wait(is_read)
    assert run.state == "stopped" and run.facts()["candidates"] == 5


def test_runs_of_sweeps_are_found_and_unfinished_folders_are_not(tmp_path: Path) -> None:
    hand_folder(tmp_path / "a")
    hand_folder(tmp_path / "sweep" / "k=1")
    hand_folder(tmp_path / "sweep" / "deep" / "er")
    hand_folder(tmp_path / ".b-123")
    (tmp_path / "notes").write_text("")
    runs = WatchedRuns(tmp_path)
    assert [*runs.refresh()] == ["a", "sweep/k=1"]


def test_that_runs_are_left_out_is_known(tmp_path: Path) -> None:
    for number in range(1001):
        (tmp_path / f"{number:04}").mkdir()
        (tmp_path / f"{number:04}" / "run.db").touch()
    runs = WatchedRuns(tmp_path)
    assert [*runs.refresh()] == [f"{number:04}" for number in range(1000)] and runs.is_cut
    shutil.rmtree(tmp_path / "0500")
    runs = WatchedRuns(tmp_path)
    assert "1000" in runs.refresh() and not runs.is_cut


def test_nothing_is_written_to_a_run(tmp_path: Path) -> None:
    folder = hand_folder(tmp_path / "a")
    before = {each: each.read_bytes() for each in folder.iterdir()}
    runs = WatchedRuns(tmp_path)
    run = runs.refresh()["a"]
    run.refresh(deadline=FAR)
    snapshot = runs.snapshot(run)
    assert snapshot is not None and snapshot.figures
    assert {each: each.read_bytes() for each in folder.iterdir()} == before


def test_what_is_no_folder_of_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no folder"):
        WatchedRuns(tmp_path / "nothing")
    with pytest.raises(UserError, match="is a run; give the folder that it lies in"):
        WatchedRuns(hand_folder(tmp_path / "a"))


def test_programs_are_listed_page_by_page(tmp_path: Path) -> None:
    hand_folder(tmp_path / "a")
    runs = WatchedRuns(tmp_path)
    run = runs.refresh()["a"]
    run.refresh(deadline=FAR)
    snapshot = runs.snapshot(run)
    assert snapshot is not None

    def ids(**asked: str | int) -> list[str]:
        given = {"order": "best", "outcome": "", "sought": "", "page": 0, **asked}
        return [each["id"] for each in snapshot.page(**given)["rows"]]  # type: ignore[union-attr]

    assert ids()[:3] == ["1.1", "0.0", "1.0"]
    assert ids(order="oldest") == [INITIAL, "0.0", "0.1", "1.0", "1.1", "1.2", "2.0"]
    assert ids(order="newest")[0] == "2.0"
    assert ids(outcome="refused: unparsed") == ["0.1"]
    assert ids(sought="infill", order="oldest") == ["0.0", "0.1", "2.0"]
    assert ids(page=99) == ids()
    page = snapshot.page(order="best", outcome="nothing", sought="", page=3)
    assert (page["rows"], page["first"], page["total"]) == ([], 0, 0)


def test_an_unjudged_child_waits(tmp_path: Path) -> None:
    events = recorded()[:4]
    run = WatchedRun("a", hand_folder(tmp_path / "a", events=events))
    run.refresh(deadline=FAR)
    assert isinstance(events[0].event, Session) and isinstance(events[3].event, Child)
    assert run.facts()["waiting"] == 1
