"""Further islands: what they begin with, what is their own, and that a log leads to them again."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from test_search_islands import (
    ISLANDS,
    PROMPTS,
    SETTINGS,
    TURBOEVOLVE,
    asked,
    child,
    iterate,
    only,
    outcome,
    parents,
    verdict,
)

from engine.core import INITIAL, Direction, Evaluation, Feature, Proposal
from engine.search import Entry, Search
from engine.settings import SearchSettings

CELLS = (Feature(name="nodes", low=0, high=1000, bins=1000),)


def new_search(
    *,
    settings: SearchSettings = SETTINGS,
    features: tuple[Feature, ...] | None = None,
    direction: Direction = Direction.MAXIMISE,
    **islands: int | float | str | None,
) -> Search:
    """Return a search of two islands that opens a third whenever a child does not improve."""
    opening = replace(ISLANDS, count=2, most=3, spawn_below=1.0, spawn_every=1)
    search = Search(
        settings=settings,
        width=TURBOEVOLVE,
        islands=replace(opening, **islands),  # type: ignore[arg-type]
        prompts=replace(PROMPTS, history_tokens=9),
        direction=direction,
        seed=5,
        size=lambda _: 1,
        features=features,
    )
    search.admit(Entry(id=INITIAL, program="def f(x):\n    return x\n"))
    search.tell(INITIAL, Evaluation(score=0.5, failure=None), cell=(0,))
    return search


def opened() -> Search:
    """Return a search whose third island was opened with 0.2, 2.0, 0.1, 0.0 and 1.0."""
    search = new_search()
    iterate(search, 0, 0.6, 0.7, 0.9, island=0)  # each the best of its island so far
    assert search.islands == 2
    iterate(search, 1, 0.55, island=1)
    assert search.islands == 2
    search.admit(child(2, 0, island=1))
    search.tell("2.0", verdict(0.8))  # of an iteration that is not over
    search.admit(child(3, 0, island=0))
    search.tell("3.0", verdict(0.4))
    search.finish(outcome(3, island=0))
    return search


# What it begins with.


def test_it_begins_with_the_five_best_programs_of_all_islands() -> None:
    search = opened()
    assert search.islands == 3
    assert parents(search, 2) == {"0.2", "2.0", "0.1", "0.0", "1.0"}  # 0.9, 0.8, 0.7, 0.6, 0.55
    proposal = search.ask(9, island=2)
    assert [each.id for each in proposal.history] == ["1.0", "0.0", "0.1", "2.0", "0.2"]
    assert (proposal.island, proposal.pending, proposal.k) == (2, (), 5)
    assert search.first_best(2) == 0.9
    assert search.first_best(0) == search.first_best(1) == 0.5
    assert "3.0" not in parents(search, 1)


def test_where_scores_are_minimised_the_lowest_are_the_best() -> None:
    search = new_search(direction=Direction.MINIMISE)
    iterate(search, 0, 0.4, 0.3, 0.45, 0.2, 0.6, island=0)
    assert parents(search, 2) == {"0.3", "0.1", "0.0", "0.2", INITIAL}
    assert search.first_best(2) == 0.2


def test_there_are_fewer_where_fewer_programs_have_a_score() -> None:
    search = new_search(count=1, most=2)
    iterate(search, 0, None, None, island=0)
    assert (search.islands, parents(search, 1)) == (2, {INITIAL})


def test_it_is_told_no_program_that_was_told_before() -> None:
    search = opened()
    assert len(parents(search, 2)) == 5
    iterate(search, 4, 0.95, island=1)
    assert len(parents(search, 2)) == 5


# What is its own.


def test_it_takes_the_last_place_of_the_ring_and_what_it_sends_is_its_own() -> None:
    search = new_search(migrate_every=1)
    iterate(search, 0, 0.9, island=0)
    iterate(search, 1, 0.45, island=1)
    assert search.islands == 3
    iterate(search, 2, 0.48, island=1)
    assert parents(search, 2) == {INITIAL, "0.0", "1.0", "2.0"}
    assert parents(search, 0) == {INITIAL, "0.0"}  # where island 1 sent its best before
    iterate(search, 3, 0.35, island=2)
    assert parents(search, 0) == {INITIAL, "0.0", "3.0"}
    assert parents(search, 1) == {INITIAL, "0.0", "1.0", "2.0"}


def test_what_is_sent_on_when_it_is_opened_goes_to_it() -> None:
    """As in the source: islands are opened first, then some migrate."""
    search = new_search(migrate_every=1, migrants=9)
    iterate(search, 0, 0.9, 0.8, 0.7, 0.6, 0.55, 0.4, island=1)
    assert search.islands == 3
    assert parents(search, 0) == {INITIAL}
    assert parents(search, 2) == {f"0.{index}" for index in range(6)}  # the last one by the ring


def test_it_has_a_width_of_its_own() -> None:
    search = new_search(spawn_every=10**6)
    for iteration in range(6):
        search.finish(outcome(2 * iteration, island=0))  # of which none improved
    assert [search.ask(20, island=island).k for island in range(3)] == [7, 5, 5]


def test_it_has_a_mix_and_a_parent_policy_of_its_own() -> None:
    bandit = replace(only(p_elite=1.0), operators_policy="kl_ucb")
    search = new_search(settings=bandit)
    for iteration in range(2):
        search.begin(iteration, island=0, operator="rewrite", repairs=None)
        iterate(search, iteration, 0.3, island=0)
    asked = {search.ask(number, island=2).operator for number in range(40, 80)}
    assert asked == {"rewrite", "diff"}  # neither was used there
    assert {search.ask(number, island=0).operator for number in range(40, 80)} == {"diff"}


def test_its_failed_attempts_are_its_own() -> None:
    search = new_search(count=1, most=2)
    iterate(search, 0, None, island=0)
    assert [len(search.ask(9, island=i).failures) for i in range(2)] == [1, 0]
    iterate(search, 1, None, None, island=1)
    assert [len(search.ask(9, island=i).failures) for i in range(2)] == [1, 2]


def test_it_has_an_archive_of_its_own() -> None:
    search = new_search(features=CELLS, settings=replace(SETTINGS, archive="structure"))
    for index, (score, cell) in enumerate([(0.6, (1,)), (0.4, (1,)), (0.45, (2,))]):
        search.admit(child(0, index, island=0))
        search.tell(f"0.{index}", verdict(score), cell=cell)
    search.finish(outcome(0, island=0))
    assert parents(search, 0) == parents(search, 2) == {INITIAL, "0.0", "0.2"}
    for island in (1, 2):
        search.admit(child(island, 0, island=island))
        search.tell(f"{island}.0", verdict(0.46), cell=(2,))
        assert search.taken_over(island, island=island) == 1
        search.finish(outcome(island, island=island))
    assert parents(search, 2) == {INITIAL, "0.0", "2.0"}
    assert parents(search, 0) == {INITIAL, "0.0", "0.2"}


def test_it_begins_with_programs_that_have_a_cell() -> None:
    """The five best of all have none, so they can't be parents where there are archives."""
    search = new_search(features=CELLS, count=1, most=2)
    cells = [*[None] * 5, (7,), (8,)]
    for index, cell in enumerate(cells):
        search.admit(child(0, index, island=0))
        search.tell(f"0.{index}", verdict(0.9 - 0.1 * index), cell=cell)
    search.finish(outcome(0, island=0))
    assert search.islands == 2
    assert parents(search, 1) == {INITIAL, "0.5", "0.6"}
    assert [each.id for each in search.ask(5, island=1).history] == ["0.6", "0.5", INITIAL]


def test_the_bandit_gives_it_the_room_until_it_has_had_three_children() -> None:
    search = new_search(choice="ucb", spawn_every=10**6)
    for island in (0, 1):
        iterate(search, island, 0.6, 0.7, None, island=island)
    assert search.islands == 3
    for iteration in range(2, 5):
        assert {search.preferred([0, 1, 2], iteration=n) for n in range(30)} == {2}
        # No better than 0.7, with which it began: that earns nothing.
        iterate(search, iteration, 0.65, island=2)
    # The others gained: 0.1 of 0.5 and of 0.6, then of 0.7.
    assert search.preferred([0, 1, 2], iteration=9) == 0
    assert search.preferred([1, 2], iteration=9) == 1


def test_it_is_no_island_before_it_is_opened() -> None:
    search = new_search()
    calls: list[Callable[[], object]] = [
        lambda: search.ask(5, island=2),
        lambda: search.admit(child(5, 0, island=2)),
        lambda: search.begin(5, island=2, operator="diff", repairs=None),
        lambda: search.first_best(2),
        lambda: search.programs(2),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="no island 2; there are 2, from 0"):
            call()
    iterate(search, 0, None, island=0)
    assert search.islands == 3
    for call in calls:
        call()
    with pytest.raises(ValueError, match="no island 3; there are 3, from 0"):
        search.ask(6, island=3)


# Guesses.


def test_opening_an_island_changes_no_guess_of_another() -> None:
    search = new_search()
    iterate(search, 0, 0.6, 0.7, 0.9, island=0)
    predicted = search.predict(5, island=0)
    iterate(search, 1, 0.3, 0.2, island=1)
    assert search.islands == 3
    assert search.verify(predicted) == predicted
    guess = search.predict(6, island=2)
    assert search.verify(guess) == guess == search.ask(6, island=2)
    assert {each.trials for each in search.predictor_figures().values()} == {2}


# The fold.

Told = Callable[[Search], None]


def lived(
    rng: random.Random, *, settings: SearchSettings, choice: str
) -> tuple[Search, list[Told]]:
    """Return a search of up to six islands after a history by chance, and what it was told."""
    search, events = fresh(settings=settings, choice=choice), []

    def tell(event: Told) -> None:
        events.append(event)
        event(search)

    for iteration in range(60):
        island = rng.randrange(search.islands)
        parent = search.ask(iteration, island=island).parent.id
        for index in range(3):
            made = child(iteration, index, island=island, parent=parent)
            score = rng.choice([None, *(number / 64 for number in range(64))])
            tell(lambda each, made=made: each.admit(made))
            tell(lambda each, made=made, score=score: each.tell(made.id, verdict(score)))
        ended = replace(outcome(iteration, island=island), parent=parent)
        tell(lambda each, ended=ended: each.finish(ended))
        meddle(search, rng)
    return search, events


def fresh(*, settings: SearchSettings, choice: str) -> Search:
    return new_search(
        settings=settings, choice=choice, most=6, spawn_below=0.3, spawn_every=12, migrate_every=2
    )


def meddle(search: Search, rng: random.Random) -> None:
    """Ask and predict, which is to change nothing."""
    island, number = rng.randrange(search.islands), rng.randrange(100)
    search.verify(search.predict(number, island=island))
    search.preferred(range(search.islands), iteration=number)


def said(search: Search) -> tuple[list[Proposal], list[int | None]]:
    """Return all that a search that goes on would say."""
    islands = range(search.islands)
    return asked(search), [search.preferred(islands, iteration=n) for n in range(70, 90)]


@pytest.mark.parametrize("choice", ["turns", "ucb"])
@pytest.mark.parametrize("policy", ["hybrid", "adaevolve", "shinka", "puct"])
def test_a_log_that_is_told_again_opens_the_same_islands(policy: str, choice: str) -> None:
    rng = random.Random(f"{policy} {choice}")
    settings = replace(SETTINGS, parent=replace(SETTINGS.parent, policy=policy))
    alive, events = lived(rng, settings=settings, choice=choice)
    assert alive.islands == 6
    again = fresh(settings=settings, choice=choice)
    numbers = []
    for event in events:
        event(again)
        numbers.append(again.islands)
    assert said(again) == said(alive)
    assert set(numbers) == {2, 3, 4, 5, 6} and numbers == sorted(numbers)
    end = rng.randrange(numbers.index(4), numbers.index(6))  # between two openings
    cut_short = fresh(settings=settings, choice=choice)
    for event in events[:end]:
        event(cut_short)
        meddle(cut_short, rng)
    for event in events[end:]:
        event(cut_short)
    assert said(cut_short) == said(alive)


@pytest.mark.parametrize("choice", ["turns", "ucb"])
@pytest.mark.parametrize("most", [None, 2])
def test_without_further_islands_all_is_as_it_was(most: int | None, choice: str) -> None:
    """Not one number is drawn otherwise, however unproductive the islands are."""
    rng = random.Random(3)
    searches = [
        new_search(most=each, choice=choice, migrate_every=2, spawn_below=below)
        for each, below in ((most, 1.0), (9, 1e-9))
    ]
    for iteration in range(20):
        scores = [rng.choice([None, rng.random()]) for _ in range(3)]
        for search in searches:
            iterate(search, iteration, *scores, island=iteration % 2)
    assert [search.islands for search in searches] == [2, 2]
    assert said(searches[0]) == said(searches[1])
