"""The search with an archive: parents are elites, migrants included; all else is as without one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from births import born

from engine import config
from engine.core import INITIAL, Direction, Evaluation, Failure, Feature
from engine.search.features import cell_of
from engine.search.search import Search
from engine.search.widths import IterationOutcome
from engine.syntax import read

SETTINGS = config.resolve(
    [
        *("islands.count=2", "islands.migrate_every=1", "islands.migrants=1"),
        *("prompts.layout=stable", "prompts.history_tokens=1000", "search.k=4"),
        *("search.parent.p_elite=0.2", "search.parent.p_uniform=0.8"),
    ]
)
FEATURES = (Feature(name="lag", low=0, high=4, bins=4),)


def new_search(
    *, features: Sequence[Feature] | None = FEATURES, every: int = 0, schedule: Any = None
) -> Search:
    """Return a search that was told of the initial program, with the score 0.5 in cell 0."""
    search = Search(
        settings=SETTINGS.search,
        width=SETTINGS.width,
        islands=replace(SETTINGS.islands, migrate_every=every, schedule=schedule),
        prompts=SETTINGS.prompts,
        direction=Direction.MAXIMISE,
        seed=3,
        size=len,
        features=features,
    )
    begin_with(search, INITIAL, "def f(x):\n    return x\n", valid(0.5, lag=0.0))
    return search


def begin_with(search: Search, name: str, text: str, evaluation: Evaluation, **where: Any) -> None:
    program = read(text)
    cell = cell_of(read("x"), evaluation, features=search.features)
    search.begin_with(name, program, score=evaluation.score, cell=cell, **where)


def tell(search: Search, name: str, evaluation: Evaluation, *, program: str = "x") -> None:
    """Tell a verdict with its cell, as a run does."""
    search.tell(name, evaluation, cell=cell_of(read(program), evaluation, features=search.features))


def valid(score: float, **metrics: float) -> Evaluation:
    return Evaluation(score=score, failure=None, metrics={"score": score, **metrics})


def admit(search: Search, name: str, *, island: int = 0, program: str = "") -> None:
    iteration, index = map(int, name.split("."))
    text = program or f"def f(x):\n    return x * {iteration} + {index}\n"
    search.admit(
        *born(
            id=name,
            program=read(text),
            iteration=iteration,
            index=index,
            island=island,
            parent=INITIAL,
            operator="infill",
        )
    )


def grow(search: Search, name: str, score: float, *, island: int = 0, **metrics: float) -> None:
    admit(search, name, island=island)
    tell(search, name, valid(score, **metrics))


def finish(search: Search, iteration: int, *, island: int = 0) -> None:
    search.finish(
        IterationOutcome(
            island=island,
            iteration=iteration,
            parent=INITIAL,
            children=4,
            improved=0,
            model_seconds=1.0,
            computed_tokens=10,
            repeated_tokens=2,
            decode_steps=5,
            generated_tokens=8,
            evaluation_seconds=0.1,
        )
    )


def parents(search: Search, island: int = 0) -> set[str]:
    """Return who is drawn in many iterations."""
    return {search.ask(number, island=island).parent.id for number in range(1000, 1200)}


def test_parents_are_the_elites_and_no_other() -> None:
    search, without = new_search(), new_search(features=None)
    for each in (search, without):
        grow(each, "0.0", 0.4, lag=0.5)  # worse than the initial program, in its cell
        grow(each, "0.1", 0.1, lag=2.5)
        grow(each, "0.2", 0.9, lag=3.5)
        grow(each, "0.3", 0.8, lag=9.0)  # beyond the range, so in the last cell too
    assert parents(search) == {INITIAL, "0.1", "0.2"}
    assert parents(without) == {INITIAL, "0.0", "0.1", "0.2", "0.3"}
    assert parents(search, island=1) == {INITIAL}


def test_what_is_shown_refused_and_sent_on_is_as_without_an_archive() -> None:
    search, without = new_search(every=1), new_search(features=None, every=1)
    for each in (search, without):
        grow(each, "0.0", 0.4, lag=0.5)
        grow(each, "0.1", 0.45, lag=0.5)
        finish(each, 0)
    asked, plain = (each.ask(1, island=0, parent_id=INITIAL) for each in (search, without))
    shown, shown_without = ([c.id for c in each.history] for each in (asked, plain))
    assert shown == shown_without and len(shown) == 2
    others, others_without = ([c.id for c in each.programs(0)] for each in (search, without))
    assert others == others_without
    assert parents(search, island=1) == {INITIAL}  # 0.1 came, and has no cell there
    assert [each.id for each in search.programs(1)] == [INITIAL, "0.1"]


def test_guests_become_parents_where_they_have_a_cell() -> None:
    search = new_search(every=1)
    grow(search, "0.0", 0.4, lag=1.5)
    finish(search, 0)
    assert parents(search, island=1) == {INITIAL, "0.0"}
    seed = "def f(x):\n    return 7\n"
    begin_with(search, "pool.0", seed, valid(0.6, lag=1.0), index=1, islands=(1,))
    assert parents(search, island=1) == {INITIAL, "pool.0"}
    assert parents(search, island=0) == {INITIAL, "0.0"}


def test_a_program_without_a_cell_is_no_parent_and_takes_none() -> None:
    search = new_search()
    grow(search, "0.0", 0.9)
    grow(search, "0.1", 0.9, lag=float("nan"))
    assert parents(search) == {INITIAL}
    assert search.improved(0, 0) == 0


def test_measures_of_the_text_are_features_too() -> None:
    features = (Feature(name="calls", low=0, high=3, bins=3), *FEATURES)
    search = new_search(features=features)
    program = "def f(x):\n    return abs(x)\n"
    admit(search, "0.0", program=program)
    tell(
        search, "0.0", valid(0.1, lag=0.0, calls=0.0), program=program
    )  # a metric of that name does not count
    assert parents(search) == {INITIAL, "0.0"}


def test_children_that_take_over_a_cell_are_counted_until_the_iteration_is_over() -> None:
    search = new_search()
    grow(search, "0.0", 0.7, lag=0.5)
    grow(search, "0.1", 0.6, lag=0.5)
    grow(search, "0.2", 0.2, lag=0.5)
    admit(search, "0.3")
    search.tell("0.3", Evaluation(score=None, failure=Failure.ERROR))
    assert search.improved(0, 0) == 2
    assert search.improved(1, 0) == 0
    finish(search, 0)
    grow(search, "1.0", 0.65, lag=0.5)
    assert search.improved(0, 1) == 0
    with pytest.raises(ValueError, match="there is no island 2"):
        search.improved(2, 0)


def test_nothing_can_be_asked_for_where_no_program_has_a_cell() -> None:
    search = new_search(features=(Feature(name="speed", low=0, high=1, bins=2),))
    with pytest.raises(ValueError, match="nothing to start from"):
        search.ask(0, island=0)


def test_an_island_that_is_opened_begins_with_programs_that_may_be_parents() -> None:
    """The best programs of all lack the feature, so they are in no archive."""
    search = new_search(schedule={"policy": "adaevolve", "below": 0.5, "every": 3, "most": 3})
    grow(search, "0.0", 0.4, lag=2.5)
    for place in range(1, 7):
        grow(search, f"0.{place}", 1.0 - 0.05 * place)
    finish(search, 0)
    assert search.islands == 3
    assert parents(search, 2) == {INITIAL, "0.0"}


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_verdicts_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"{iteration}.{index}" for iteration in range(4) for index in range(4)]
    verdicts = {each: valid(rng.random(), lag=4 * rng.random()) for each in names}
    searches = [new_search(), new_search()]
    for search in searches:
        for iteration in range(4):
            own = names[4 * iteration : 4 * iteration + 4]
            for name in rng.sample(own, 4):
                admit(search, name)
            for name in rng.sample(own, 4):
                tell(search, name, verdicts[name])
            finish(search, iteration)
    one, other = searches
    for number in range(50, 80):
        assert one.ask(number, island=0) == other.ask(number, island=0)
