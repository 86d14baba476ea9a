"""An island that comes to a host where the model learns."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from scripted import ScriptModel

from engine import config
from engine.beginning import begun_session
from engine.cluster.files import Files
from engine.cluster.host import open_host
from engine.cluster.islands import island_settings
from engine.cluster.learning.island_learner import WorkerLearning
from engine.cluster.learning.shared_update import SharedUpdate
from engine.cluster.places import island_folder
from engine.core import INITIAL, Call, Evaluation, Event, Update, Verdict
from engine.parts import read_problem
from engine.store import create_run, read_log

ARGUMENTS = (
    *("problem=signal", "fill=none", "learning=mean_baseline", "cluster=ray", "islands.count=1"),
    *("search.operators.infill=0", "search.operators.rewrite=1", "search.k=2"),
    *("budget.candidates=4", "budget.seconds=null", "evaluation.workers=1"),
)


class Model(ScriptModel):
    """Notes what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.adopted: list[int] = []

    def adopt(self, version: int, folder: Path) -> None:
        assert folder.is_dir() and not self.asked
        self.adopted.append(version)


class Far:
    """The files of a version."""

    def get(self) -> Files:
        return {"adapter_model.safetensors": b"w"}


def update(number: int) -> Update:
    return Update(number=number, version=number, groups=(), stale=0, progress=0.0, reward=0.0)


def events(folder: Path) -> list[Event]:
    return [recorded.event for recorded in read_log(island_folder(folder, 0))]


def test_calls_of_an_island_that_was_nowhere_begin_with_the_latest_version(tmp_path: Path) -> None:
    """Its own is at no worker any more; the log says so before anything is asked for."""
    settings, folder = config.resolve(ARGUMENTS), tmp_path / "run"
    problem = read_problem(settings)
    evaluation = Evaluation(score=0.5, failure=None, metrics={"score": 0.5})
    first = Verdict(candidate=INITIAL, evaluation=evaluation, program=problem.initial_program)
    create_run(
        island_folder(folder, 0),
        write_config=partial(config.save, island_settings(settings, 0)),
        events=[begun_session(0, problem), first, update(1)],
    )
    model, learning = Model(), WorkerLearning(tmp_path / "adapters")
    learning.take(SharedUpdate(update=update(9), logs=()), {each: Far() for each in range(4, 10)})
    with open_host(
        settings,
        problem,
        folder=folder,
        timeline=tmp_path / "timeline.json",
        load=lambda: model,  # type: ignore[arg-type, return-value]
        learning=learning,
    ) as host:
        host.add(0)
        assert events(folder)[-1] == update(9)
        assert learning.standings[0].versions
        while not model.asked:
            assert not host.turn()
            host.wait()
    (call, *_) = [each for each in events(folder) if isinstance(each, Call)]
    assert (call.adapter, model.adopted, model.asked[0].adapter) == (9, [9], 9)
