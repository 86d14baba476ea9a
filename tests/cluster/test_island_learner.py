"""Learning on a worker: what islands hand in, and when their calls begin with a version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from births import born, made_call
from hand_trainer import HandAdopter

from engine.cluster.files import Files
from engine.cluster.learning.island_learner import IslandLearner, WorkerLearning
from engine.cluster.learning.shared_update import SharedUpdate, shared_updates_of
from engine.cluster.sharing import SharedDecoder
from engine.core import (
    INITIAL,
    Direction,
    Evaluation,
    Event,
    Refusal,
    Session,
    Update,
    UserError,
    Verdict,
)
from engine.learning import Group
from engine.store import Recorded, RunHistory


class Far:
    """The files of a version, which count how often they are fetched."""

    def __init__(self) -> None:
        self.fetched = 0

    def get(self) -> Files:
        self.fetched += 1
        return {"adapter_model.safetensors": b"w"}


class Bench:
    """An island of a worker, with what it works with."""

    def __init__(
        self, worker: WorkerLearning, *, number: int = 3, events: Sequence[Event] = ()
    ) -> None:
        self.history = RunHistory(direction=Direction.MAXIMISE)
        self.events: list[Event] = []
        self.island_learner = IslandLearner(
            number=number,
            history=self.history,
            make_group=lambda call, history: Group(
                iteration=call.iteration, adapter=call.adapter, members=()
            ),
            share=lambda: 0.25,
            worker=worker,
            max_lag=1,
        )
        self.record(*(events or first_events()))
        self.adopter = HandAdopter()
        self.island_learner.serve(self.adopter)

    def record(self, *events: Event) -> None:
        for event in events:
            self.events.append(event)
            self.history.fold(Recorded(session=0, elapsed=0.0, event=event))
            self.island_learner.fold(event)

    def call(self, iteration: int, *, judged: bool = True) -> None:
        self.record(replace(made_call(iteration), adapter=self.history.adapter))
        for index in range(4 if judged else 3):
            child, _ = born(
                id=f"{iteration}.{index}", program=None, iteration=iteration, index=index
            )
            self.record(replace(child, refusal=Refusal.UNPARSED))

    def turn(self) -> list[Update]:
        updates = []
        for update in self.island_learner.completed():
            self.record(update)
            updates.append(update)
        return updates


def first_events() -> list[Event]:
    evaluation = Evaluation(score=0.5, failure=None)
    return [
        Session(number=0, engine="0", fingerprint="f"),
        Verdict(candidate=INITIAL, evaluation=evaluation, program="x = 0\n"),
    ]


def shared(
    number: int, *, version: int | None = None, logs: Sequence[int] = (3, 5)
) -> SharedUpdate:
    update = Update(
        number=number,
        version=number if version is None else version,
        groups=tuple(range(len(logs))),
        stale=0,
        progress=0.5,
        reward=0.25,
    )
    return SharedUpdate(update=update, logs=tuple(logs))


def handed_in(worker: WorkerLearning) -> list[tuple[int, int]]:
    groups = [worker.groups.get() for _ in range(worker.groups.qsize())]
    return [(each.log, each.iteration) for each in groups]


@pytest.fixture
def worker(tmp_path: Path) -> WorkerLearning:
    return WorkerLearning(tmp_path)


def test_what_is_judged_is_handed_in_once(worker: WorkerLearning) -> None:
    bench = Bench(worker)
    bench.call(0)
    bench.call(1, judged=False)
    assert bench.turn() == []
    assert handed_in(worker) == [(3, 0)]
    standing = worker.standings[3]
    assert (standing.share, standing.versions) == (0.25, {0})  # call 1 is open
    bench.turn()
    assert handed_in(worker) == []


def test_calls_begin_with_a_version_once_it_is_loaded_and_recorded(worker: WorkerLearning) -> None:
    bench, far = Bench(worker), Far()
    worker.take(shared(1), {1: far})
    assert bench.turn() == []
    assert bench.adopter.asked == [1] and bench.history.adapter == 0
    worker.take(shared(2), {1: far, 2: far})  # the next is there before this one is loaded
    assert bench.turn() == []
    bench.adopter.loaded = [(1, 7.5)]
    (update,) = bench.turn()
    assert (update.number, update.groups, update.swap_ms) == (1, (0,), 7.5)
    assert bench.history.adapter == 1
    assert bench.turn() == []
    bench.adopter.loaded = [(2, 1.0)]
    assert [each.number for each in bench.turn()] == [2]
    worker.take(shared(1), {1: far})  # overtaken on its way
    assert bench.turn() == []


def test_a_step_that_changes_nothing_is_recorded_at_once(worker: WorkerLearning) -> None:
    bench = Bench(worker)
    worker.take(shared(1, version=0), {})
    assert [(each.number, each.version) for each in bench.turn()] == [(1, 0)]
    assert bench.adopter.asked == []


def test_islands_of_a_worker_fetch_a_version_once(worker: WorkerLearning) -> None:
    benches, far = [Bench(worker, number=number) for number in (3, 5)], Far()
    worker.take(shared(1), {1: far})
    for bench in benches:
        bench.turn()
        bench.adopter.loaded = [(1, 1.0)]
    found = {bench.island_learner.number: bench.turn() for bench in benches}
    assert [update.groups for updates in found.values() for update in updates] == [(0,), (1,)]
    assert far.fetched == 1
    (whole,) = shared_updates_of(found)
    assert (whole.update.groups, whole.logs) == ((0, 1), (3, 5))


def test_an_island_that_moves_hands_in_what_was_not_learned(
    worker: WorkerLearning, tmp_path: Path
) -> None:
    bench, far = Bench(worker), Far()
    for iteration in range(3):
        bench.call(iteration)
    worker.take(shared(1, logs=(3,)), {1: far})  # learned from call 0
    bench.turn()
    bench.adopter.loaded = [(1, 1.0)]
    bench.turn()
    bench.call(3, judged=False)
    there = WorkerLearning(tmp_path / "there")
    with pytest.raises(UserError, match="version 1 of the adapter is not here yet"):
        Bench(there, events=bench.events)
    there.take(shared(2, version=0), {1: far})
    again = Bench(there, events=bench.events)
    assert again.adopter.asked == [1]  # of the call that is open
    assert [each.number for each in again.turn()] == [2]
    assert handed_in(there) == [(3, 1), (3, 2)]


def test_an_island_that_was_nowhere_goes_on_with_the_latest_step(
    worker: WorkerLearning, tmp_path: Path
) -> None:
    """Before its next call, for its own version may be gone by then, at every worker."""
    bench, far = Bench(worker), Far()
    worker.take(shared(1), {1: far})
    bench.turn()
    bench.adopter.loaded = [(1, 1.0)]
    bench.turn()
    there = WorkerLearning(tmp_path / "there")
    there.take(shared(9, logs=(5, 3, 3)), {each: far for each in range(4, 10)})
    again = Bench(there, events=bench.events)
    assert again.adopter.asked == [9]
    assert [(each.number, each.groups) for each in again.turn()] == [(9, (1, 2))]
    assert again.history.adapter == 9
    assert again.turn() == []
    later = Bench(there, events=again.events)
    assert later.adopter.asked == [9] and later.turn() == []


def test_an_island_that_was_nowhere_still_decodes_what_is_open(
    worker: WorkerLearning, tmp_path: Path
) -> None:
    bench, far = Bench(worker), Far()
    worker.take(shared(1), {1: far})
    bench.turn()
    bench.adopter.loaded = [(1, 1.0)]
    bench.turn()
    bench.call(0, judged=False)
    there = WorkerLearning(tmp_path / "there")
    there.take(shared(9), {1: far, **{each: far for each in range(4, 10)}})
    again = Bench(there, events=bench.events)
    assert again.adopter.asked == [1, 9]
    assert [each.number for each in again.turn()] == [9]
    again.turn()
    assert there.standings[3].versions == {1, 9}


def test_the_version_that_the_next_call_begins_with_is_needed(worker: WorkerLearning) -> None:
    bench = Bench(worker)
    worker.take(shared(1), {1: Far()})
    bench.turn()
    bench.adopter.loaded = [(1, 1.0)]
    for _ in range(2):
        bench.turn()
    assert worker.standings[3].versions == {1}


def test_versions_that_nobody_needs_are_removed(worker: WorkerLearning, tmp_path: Path) -> None:
    worker.take(shared(1), {1: Far()})
    worker.folder(1)
    worker.take(shared(2), {2: Far()})
    assert [*tmp_path.iterdir()] == []


@pytest.fixture
def clients() -> Iterator[tuple[HandAdopter, Sequence[HandAdopter]]]:
    decoder = HandAdopter()
    shared = SharedDecoder(decoder)  # type: ignore[arg-type]
    with ExitStack() as stack:
        yield decoder, [stack.enter_context(shared.client()) for _ in range(2)]  # type: ignore[misc]


def test_a_model_that_islands_share_loads_a_version_once(
    clients: tuple[HandAdopter, Sequence[HandAdopter]],
) -> None:
    decoder, (first, second) = clients
    first.adopt(1, Path("000001"))
    second.adopt(1, Path("000001"))
    assert decoder.asked == [1]
    assert first.adopted() == []
    decoder.loaded = [(1, 5.0)]
    assert second.adopted() == [(1, 5.0)]
    assert first.adopted() == [(1, 5.0)] and first.adopted() == []
    first.adopt(1, Path("000001"))  # an island that came back
    assert decoder.asked == [1] and first.adopted() == [(1, 5.0)]
