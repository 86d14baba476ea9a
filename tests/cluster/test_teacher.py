"""Which versions stay: those with which an island may still go on, wherever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from births import born, made_call
from hand_trainer import HandTrainer

from engine import config
from engine.cluster.files import Files, put_files
from engine.cluster.islands import island_settings
from engine.cluster.learning import teacher
from engine.cluster.learning.island_learner import Standing
from engine.cluster.learning.shared_learner import SharedLearner
from engine.cluster.learning.teacher import Teacher
from engine.cluster.on_ray import WorkerLost
from engine.cluster.places import island_folder
from engine.cluster.worker_report import WorkerReport
from engine.core import INITIAL, Direction, Evaluation, Event, Refusal, Session, Update, Verdict
from engine.learning import Group
from engine.learning.group import Member
from engine.settings import RunSettings
from engine.store import create_run

CHECKPOINT = {"adapter_config.json": b"{}", "adapter_model.safetensors": b"w", "trainer.pt": b"t"}


def update(number: int) -> Update:
    return Update(number=number, version=number, groups=(), stale=0, progress=0.0, reward=0.0)


def founded(folder: Path, settings: RunSettings, logs: Sequence[Sequence[Event]]) -> None:
    """Make the islands' runs, each with these events behind its first ones."""
    first = Verdict(
        candidate=INITIAL, evaluation=Evaluation(score=0.5, failure=None), program="x = 0\n"
    )
    for number, events in enumerate(logs):
        create_run(
            island_folder(folder, number),
            write_config=partial(config.save, island_settings(settings, number)),
            events=[Session(number=0, engine="0", fingerprint="f"), first, *events],
        )


class Bench:
    """A driver's teacher, whose trainer the test has in hand."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        *,
        logs: Sequence[Sequence[Event]],
        versions: Sequence[int] = (),
    ) -> None:
        self.folder = folder
        self.trainer = HandTrainer()
        settings = config.resolve(
            [
                *("problem=signal", "learning=mean_baseline", "learning.groups=1", "cluster=ray"),
                *(f"islands.count={len(logs)}", f"budget.candidates={10 * len(logs)}"),
            ]
        )
        founded(folder, settings, logs)
        for version in versions:
            put_files(folder / "adapters" / f"{version:06}", CHECKPOINT)
        monkeypatch.setattr(teacher, "shared_learner", self.learner)
        self.teacher = Teacher(settings, folder, direction=Direction.MAXIMISE)

    def learner(
        self,
        settings: RunSettings,
        folder: Path,
        *,
        recorded: Mapping[int, Sequence[Update]],
        progress: Callable[[], float],
    ) -> SharedLearner:
        self.progress = progress
        return SharedLearner(
            settings.learning,
            folder=folder,
            recorded=recorded,
            start=lambda checkpoint: self.trainer,  # type: ignore[arg-type, return-value]
            store=Here,
            progress=progress,
        )

    def steps(self, *numbers: int) -> None:
        """Have steps made, each of them with a new version."""
        for number in numbers:
            member = Member(answers=(), reward=0.0)
            group = Group(log=0, iteration=number, adapter=number - 1, members=(member, member))
            self.teacher.take(report(groups=[group]), islands=())
            self.teacher.turn([])
            put_files(self.trainer.jobs[-1].folder, CHECKPOINT)
            self.trainer.finish()
            self.teacher.turn([])

    @property
    def kept(self) -> list[int]:
        return sorted(int(each.name) for each in (self.folder / "adapters").iterdir())


class Here:
    """Files that are stored in this process."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def get(self) -> Files:
        return self.files


class Asked:
    """A worker that notes what it is told; one that is lost notes nothing."""

    def __init__(self, *, is_lost: bool = False) -> None:
        self.is_lost = is_lost
        self.heard: list[tuple[int, list[int]]] = []

    def call(self, method: str, latest: Any, stored: Mapping[int, object]) -> None:
        assert method == "learn"
        if self.is_lost:
            raise WorkerLost("it died")
        self.heard.append((latest.update.number, sorted(stored)))


def report(
    *, groups: Sequence[Group] = (), standings: Mapping[int, Standing] | None = None
) -> WorkerReport:
    return WorkerReport(
        islands={},
        lost={},
        candidates=0,
        seconds=0.0,
        error="",
        groups=groups,
        standings=standings or {},
    )


def standing(*versions: int) -> Standing:
    return Standing(share=0.5, versions=frozenset(versions))


def test_a_driver_that_begins_knows_what_the_logs_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an island whose call is open could go on at no worker, now or after any resume."""
    judged, child = (
        replace(made_call(0, k=1), adapter=1),
        born(id="0.0", program=None, iteration=0)[0],
    )
    cut_short = replace(made_call(1), adapter=2)
    log: list[Event] = [update(1), judged, replace(child, refusal=Refusal.UNPARSED), update(2)]
    bench = Bench(
        tmp_path,
        monkeypatch,
        logs=[[*log, cut_short, update(3)], [update(number) for number in (1, 2, 3, 4)]],
        versions=[1, 2, 3, 4],
    )
    bench.steps(*range(5, 13))
    # Version 2 of the call that is cut short, 3 of the next one, 4 of the other island's.
    assert bench.kept == [2, 3, 4, *range(7, 13)]


def test_what_an_island_may_have_gone_on_with_unheard_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, monkeypatch, logs=[[], []])
    bench.steps(1, 2, 3)
    reported = report(standings={0: standing(1), 1: standing(3)})
    bench.teacher.take(reported, islands=[0])  # island 1 is somewhere else
    bench.teacher.leave(0)  # its worker is lost, and was told of 2 and 3
    bench.steps(*range(4, 13))
    assert bench.kept == [1, 2, 3, *range(7, 13)]
    bench.teacher.take(report(standings={0: standing(12)}), islands=[0])
    bench.steps(13)
    assert bench.kept == [*range(8, 14)]


def test_an_island_that_is_over_needs_nothing_and_has_spent_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, monkeypatch, logs=[[], []])
    assert bench.progress() == 0.0
    bench.steps(1)
    bench.teacher.take(report(standings={0: standing(1), 1: standing(0)}), islands=[0, 1])
    assert bench.progress() == 0.5
    bench.teacher.end(0)
    assert bench.progress() == 0.75
    bench.steps(*range(2, 9))
    assert bench.kept == [*range(3, 9)]


def test_workers_are_told_of_a_step_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, worker, lost = Bench(tmp_path, monkeypatch, logs=[[]]), Asked(), Asked(is_lost=True)
    workers: Any = [lost, worker]
    bench.teacher.turn(workers)
    assert worker.heard == []
    bench.steps(1)
    for _ in range(2):
        bench.teacher.turn(workers)
    assert worker.heard == [(1, [1])]
    bench.steps(2)
    late: Any = Asked()
    bench.teacher.turn([*workers, late])
    assert worker.heard == [(1, [1]), (2, [1, 2])] and late.heard == [(2, [1, 2])]
