"""The driver, with workers and a fleet that the test has in hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine import config
from engine.cluster import driver as module
from engine.cluster.driver import Driver
from engine.cluster.islands import island_settings
from engine.cluster.places import island_folder
from engine.cluster.worker_report import IslandReport, WorkerReport
from engine.parts import read_problem
from engine.settings import Dtype, RunSettings

ISLANDS = 2


class HandWorker:
    """A worker whose islands are over at once, unless the test says otherwise."""

    def __init__(self, *_: object, settings: str, **__: object) -> None:
        self.settings = settings
        self.stays: dict[int, int] = {}
        self.told: list[tuple[str, int]] = []

    def tell(self, method: str, *arguments: Any) -> None:
        if method in ("add", "remove"):
            self.told.append((method, arguments[0]))
        if method == "add":
            self.stays[arguments[0]] = arguments[1]

    def report(self, *, is_over: bool = True, seconds: float = 0.0) -> WorkerReport:
        known = IslandReport(candidates=1, best_score=0.5, is_over=is_over)
        return WorkerReport(
            islands=dict.fromkeys(self.stays, known),
            lost={},
            candidates=1,
            seconds=seconds,
            error="",
            stays=dict(self.stays),
        )


class HandFleet:
    """Has a worker from its first turn on, and a second one from its second turn on."""

    def __init__(self, make: Any, **_: object) -> None:
        self.make = make
        self.ready: list[HandWorker] = []
        self.prefillers: list[HandWorker] = []

    def turn(self) -> Mapping[HandWorker, WorkerReport]:
        found = {each: each.report() for each in self.ready}
        if len(self.ready) < 2:
            self.ready.append(self.make(False))
        return found

    def node_of(self, worker: HandWorker) -> str:
        return "here"

    def close(self) -> None:
        self.ready.clear()


class NoOutposts:
    """None."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def turn(self, workers: Sequence[HandWorker]) -> None:
        pass

    def close(self) -> None:
        pass


class NotedTeacher:
    """Notes which islands go, and how."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, int]] = []

    def take(self, report: WorkerReport, *, islands: Sequence[int]) -> None:
        pass

    def leave(self, number: int) -> None:
        self.noted.append(("leave", number))

    def end(self, number: int) -> None:
        self.noted.append(("end", number))


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, stand_in in (("Fleet", HandFleet), ("RayWorker", HandWorker)):
        monkeypatch.setattr(module, name, stand_in)
    monkeypatch.setattr(module, "Outposts", NoOutposts)
    monkeypatch.setattr(module, "_PAUSE", 0.0)


def driver_of(folder: Path, *, founded_in: Dtype = "auto") -> Driver:
    """A driver of a run whose islands were founded in a format of numbers."""
    settings = config.resolve(
        ["problem=signal", "cluster=ray", "cluster.workers=2", f"islands.count={ISLANDS}"]
    )
    save(settings, folder)
    for number in range(ISLANDS):
        found = config.resolve(["problem=signal", f"model.dtype={founded_in}"])
        save(island_settings(found, number), island_folder(folder, number))
    return Driver(settings, folder=folder, problem=read_problem(settings))


def save(settings: RunSettings, folder: Path) -> None:
    folder.mkdir(parents=True)
    config.save(settings, folder / "config.yaml")


def run(driver: Driver) -> Sequence[HandWorker]:
    """Have all islands go on to their ends; return the workers that there were."""
    workers: list[HandWorker] = []
    fleet: Any = driver._fleet

    def show() -> None:
        workers[:] = fleet.ready

    driver.run(stopped=lambda: False, show=show)
    return workers


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_who_begins_later_computes_in_the_format_that_the_run_was_founded_with(
    tmp_path: Path, dtype: Dtype
) -> None:
    """On whatever machine, and in a later session too."""
    folder = tmp_path / "run"
    driver = driver_of(folder, founded_in=dtype)
    for worker in run(driver):
        assert yaml.safe_load(worker.settings)["model"]["dtype"] == dtype
    kept = config.load_run(folder)
    assert kept.model.dtype == dtype and kept.islands.count == ISLANDS
    resumed = Driver(kept, folder=folder, problem=read_problem(kept))
    (worker, *_) = run(resumed)
    assert yaml.safe_load(worker.settings)["model"]["dtype"] == dtype
    assert sorted(each.name for each in folder.iterdir()) == ["config.yaml", "islands"]


def test_a_run_whose_format_is_nobodys_choice_keeps_its_settings(tmp_path: Path) -> None:
    driver = driver_of(folder := tmp_path / "run")
    before = (folder / "config.yaml").stat()
    run(driver)
    assert (folder / "config.yaml").stat().st_mtime_ns == before.st_mtime_ns


def test_the_teacher_hears_of_islands_that_go_unheard_and_of_those_that_are_over(
    tmp_path: Path,
) -> None:
    driver = driver_of(tmp_path / "run")
    teacher: Any = NotedTeacher()
    driver._teacher = teacher
    first, second = (HandWorker(settings="") for _ in range(2))
    at: Any = {0: first, 1: first}
    for number in at:
        driver._give(number, at[number])
    driver._take(first, first.report(is_over=False))  # type: ignore[arg-type]
    assert teacher.noted == []
    driver._take(first, "it died")  # type: ignore[arg-type]
    assert teacher.noted == [("leave", 0), ("leave", 1)]
    for number in at:
        driver._give(number, second)  # type: ignore[arg-type]
    fleet: Any = driver._fleet
    fleet.ready = [first, second]
    driver._move()
    assert second.told[2:] == [("remove", 0)] and teacher.noted[2:] == [("leave", 0)]
    driver._take(second, second.report())  # type: ignore[arg-type]
    assert teacher.noted[3:] == [("end", 1)]
    driver._take(first, first.report())  # type: ignore[arg-type]
    assert teacher.noted[4:] == [("end", 0)] and driver.are_over
