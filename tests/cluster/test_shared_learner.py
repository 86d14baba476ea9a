"""One trainer for the islands of a cluster: whose groups it gets, and what outlives a death."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hand_trainer import STEP, HandTrainer

from engine import config
from engine.cluster.files import Files, all_files, put_files
from engine.cluster.learning.remote_trainer import RemoteTrainer
from engine.cluster.learning.shared_learner import SharedLearner
from engine.cluster.learning.shared_update import SharedUpdate
from engine.core import Update, UserError
from engine.learning import Group, Job, Step
from engine.learning.group import Member

CHECKPOINT = {"adapter_config.json": b"{}", "adapter_model.safetensors": b"w", "trainer.pt": b"t"}
SECONDS = 60.0


class Here:
    """Files that are stored in this process."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def get(self) -> Files:
        return self.files


class Bench:
    """A learner whose trainer the test has in hand."""

    def __init__(
        self,
        folder: Path,
        *,
        recorded: Mapping[int, Sequence[Update]] | None = None,
        **changes: int,
    ) -> None:
        self.folder = folder
        self.trainer = HandTrainer()
        self.began: list[Path | None] = []
        learning = config.resolve(["learning=mean_baseline"]).learning
        self.learner = SharedLearner(
            replace(learning, **{"groups": 2, "max_lag": 1, **changes}),
            folder=folder,
            recorded=recorded or {0: [], 1: []},
            start=self.start,  # type: ignore[arg-type]
            store=Here,
            progress=lambda: 0.5,
        )

    def start(self, checkpoint: Path | None) -> HandTrainer:
        self.began.append(checkpoint)
        return self.trainer

    def take(self, *names: tuple[int, int], adapter: int = 0) -> None:
        self.learner.take([group(log, iteration, adapter=adapter) for log, iteration in names])
        self.learner.turn(needed=())

    def step(self, step: Step = STEP, *, needed: Sequence[int] = ()) -> SharedUpdate:
        """Have the step that is under way end."""
        job = self.trainer.jobs[-1]
        if step.skipped is None and step.rolled_back is None:
            put_files(job.folder, CHECKPOINT)
        self.trainer.finish(step)
        self.learner.turn(needed=needed)
        assert self.learner.latest is not None
        return self.learner.latest

    @property
    def learned(self) -> list[list[tuple[int, int]]]:
        """The groups of each step."""
        return [[(each.log, each.iteration) for each in job.groups] for job in self.trainer.jobs]


def group(log: int, iteration: int, *, adapter: int = 0) -> Group:
    member = Member(answers=(), reward=0.0)
    return Group(log=log, iteration=iteration, adapter=adapter, members=(member, member))


def test_groups_of_all_islands_make_up_a_step(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.take((1, 0))
    assert bench.trainer.jobs == []
    bench.take((0, 0))
    assert bench.learned == [[(1, 0), (0, 0)]]
    job = bench.trainer.jobs[0]
    assert (job.number, job.version, job.progress) == (1, 0, 0.5)
    shared = bench.step()
    assert (shared.update.number, shared.update.version) == (1, 1)
    assert shared.for_island(0).groups == shared.for_island(1).groups == (0,)
    assert shared.for_island(2).groups == ()
    assert bench.learner.stored[1].get().keys() == {*CHECKPOINT} - {"trainer.pt"}


def test_an_island_that_moves_and_hands_in_again_is_not_learned_from_twice(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.take((0, 0), (0, 1))
    bench.take((0, 0), (0, 1), (0, 2))  # a step is under way
    bench.step()
    bench.take((0, 0), (0, 1), (0, 2), (1, 0))
    assert bench.learned == [[(0, 0), (0, 1)], [(0, 2), (1, 0)]]


def test_groups_that_lag_too_far_behind_are_left_out_and_counted(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1, max_lag=1)
    bench.take((0, 0))
    bench.take((0, 1), (1, 1))  # of the model itself, as are all; the latest is learned from first
    bench.step()
    bench.step()  # version 2 is in force: what is left lags by two
    bench.take((1, 9), adapter=0)  # and what comes now
    assert bench.learned == [[(0, 0)], [(1, 1)]]
    bench.take((1, 10), adapter=2)
    assert bench.step().update.stale == 2


def test_of_many_groups_that_wait_the_oldest_are_left_out(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1)
    bench.take(*((0, iteration) for iteration in range(300)))
    assert bench.learned == [[(0, 299)]]
    assert bench.step().update.stale == 300 - 256


def test_as_many_groups_wait_as_a_step_takes(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=300)
    bench.take(*((0, iteration) for iteration in range(299)))
    assert bench.learned == []
    bench.take((1, 0))
    assert bench.learned == [[*((0, iteration) for iteration in range(299)), (1, 0)]]
    assert bench.step().update.stale == 0


def test_checkpoints_that_open_calls_need_stay_and_are_stored(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1)
    for number in range(1, 10):
        bench.take((0, number), adapter=number - 1)
        bench.step(needed=[2])
    assert sorted(bench.learner.stored) == [2, 4, 5, 6, 7, 8, 9]
    assert sorted(int(each.name) for each in (tmp_path / "adapters").iterdir()) == [
        *(2, 4, 5, 6, 7, 8, 9)
    ]


def test_a_driver_that_died_goes_on_with_what_any_island_has_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(tmp_path, groups=1)
    logs: dict[int, list[Update]] = {0: [], 1: []}
    for number in (1, 2, 3):
        bench.take((number % 2, number), adapter=number - 1)
        shared = bench.step()
        if number == 1:  # island 1 hears of the first step alone
            logs[1].append(shared.for_island(1))
        if number < 3:  # and nobody of the last one
            logs[0].append(shared.for_island(0))
    with caplog.at_level(logging.WARNING):
        again = Bench(tmp_path, groups=1, recorded=logs)
    assert "step 3 of training; what it learned is lost" in caplog.text
    assert again.began == [tmp_path / "adapters" / "000002"]
    assert sorted(again.learner.stored) == [1, 2]
    assert again.learner.latest is not None and again.learner.latest.update.number == 2
    again.take((1, 1), (0, 2), (1, 3), adapter=2)  # handed in again; the last is not learned from
    assert again.learned == [[(1, 3)]]
    job = again.trainer.jobs[0]
    assert (job.number, job.version) == (3, 2)


def test_a_version_that_is_missing_is_told_in_a_line(tmp_path: Path) -> None:
    bench = Bench(tmp_path, groups=1)
    bench.take((0, 0))
    update = bench.step().update
    with pytest.raises(UserError, match="000001 is missing, which the run goes on with"):
        Bench(tmp_path / "other", recorded={0: [update]})


class MortalTrainer:
    """A trainer that dies at the steps that the test says."""

    def __init__(self, checkpoint: Files | None, *, deaths: list[int]) -> None:
        self.checkpoint = checkpoint
        self.deaths = deaths
        self.is_killed = False

    def step(self, job: Job) -> tuple[Step, Files]:
        if job.number in self.deaths:
            self.deaths.remove(job.number)
            raise ConnectionError("it is dead")
        return STEP, {**CHECKPOINT, "trainer.pt": str(job.number).encode()}

    def kill(self) -> None:
        self.is_killed = True


@pytest.mark.parametrize(
    "deaths, fate", [([2, 2], None), ([2, 2, 2], "the trainer's process died 3 times in a row")]
)
def test_a_tutor_that_dies_is_replaced_from_its_last_checkpoint(
    tmp_path: Path, deaths: list[int], fate: str | None
) -> None:
    trainers: list[MortalTrainer] = []
    count, bell = len(deaths), threading.Event()

    def ask_for(checkpoint: Files | None) -> MortalTrainer:
        trainers.append(MortalTrainer(checkpoint, deaths=deaths))
        return trainers[-1]

    with RemoteTrainer(ask_for, checkpoint=None, notify=bell.set) as trainer:
        for number in (1, 2):
            folder = tmp_path / f"{number:06}"
            members = (group(0, number),)
            trainer.submit(
                Job(number=number, version=number - 1, groups=members, progress=0.0, folder=folder)
            )
            assert bell.wait(SECONDS)
            bell.clear()
            done = trainer.completed()
            assert done is not None
    assert done.step.skipped == fate and trainer.is_lost == (fate is not None)
    begun = [each.checkpoint and each.checkpoint["trainer.pt"] for each in trainers]
    assert begun == [None, *[b"1"] * (count if fate is None else count - 1)]
    assert all(each.is_killed for each in trainers)
    if fate is None:
        assert all_files(tmp_path / "000002")["trainer.pt"] == b"2"
    assert sorted(each.name for each in tmp_path.iterdir())[-1] == (
        "000002" if fate is None else "000001"
    )
