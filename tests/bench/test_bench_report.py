"""The run that ``bench.report`` makes is one that the engine reads, with all that reports show."""

from __future__ import annotations

from pathlib import Path

from bench.report import make_run
from engine.problem import load_problem, shipped
from engine.report.analysis import read_runs
from engine.report.tables import TABLES


def test_the_run_has_rows_in_every_table_but_those_of_an_advisor(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    children = make_run(folder, load_problem(shipped()["circle_packing"]), 120).children
    (run,) = runs = read_runs([folder])
    assert (len(run.trials), run.end["candidates"]) == (children, 120)
    empty = {name for name, table in TABLES.items() if not table(runs).rows}
    assert empty <= {"ideas", "settings", "arrivals"}
