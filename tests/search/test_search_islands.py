"""Several islands: independent but for the ring, whatever their interleaving."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from births import born

from engine.core import (
    INITIAL,
    Call,
    Child,
    Direction,
    Evaluation,
    Failure,
    Proposal,
    Refusal,
    Tactics,
)
from engine.search.parents.hybrid import HybridSettings
from engine.search.search import Search
from engine.search.tactics import Tactician
from engine.search.widths import WIDTHS, IterationOutcome, WidthSettings
from engine.settings import (
    IslandSettings,
    PromptSettings,
    SearchSettings,
    TacticsSettings,
)
from engine.syntax import read

SETTINGS = SearchSettings(
    k=3,
    temperature_min=0.5,
    temperature_max=1.0,
    novelty=None,
    archive="none",
    failures=3,
    parent=HybridSettings(policy="hybrid", p_elite=0.3, p_uniform=0.3, gamma=2.0, epsilon=0.01),
    operators={"rewrite": 2.0, "diff": 1.0},
    mix={"policy": "fixed"},
)
PROMPTS = PromptSettings(
    layout="stable", history_tokens=2, growth_tokens=2, align=False, pending=True
)
TURBOEVOLVE = WIDTHS.read({"policy": "turboevolve"})
ISLANDS = IslandSettings(
    count=1,
    migrate_every=0,
    migrants=1,
    topology={"policy": "ring"},
)
K = 3


def new_search(
    *,
    count: int,
    every: int = 0,
    migrants: int = 1,
    settings: SearchSettings = SETTINGS,
    width: WidthSettings = TURBOEVOLVE,
    layout: str = "stable",
    direction: Direction = Direction.MAXIMISE,
) -> Search:
    """Return a search that was told of the initial program, with the score 0.5."""
    search = Search(
        settings=settings,
        width=width,
        islands=replace(ISLANDS, count=count, migrate_every=every, migrants=migrants),
        prompts=replace(PROMPTS, layout=layout),
        direction=direction,
        seed=5,
        size=lambda _: 1,
    )
    search.begin_with(INITIAL, read("def f(x):\n    return x\n"), score=0.5)
    return search


def verdict(score: float | None) -> Evaluation:
    if score is None:
        return Evaluation(score=None, failure=Failure.ERROR, message="no")
    return Evaluation(score=score, failure=None)


def child(iteration: int, index: int, *, island: int, parent: str = INITIAL) -> tuple[Child, Call]:
    return born(
        id=f"{iteration}.{index}",
        program=read(f"def f(x):\n    return x * {iteration} + {index}\n"),
        iteration=iteration,
        index=index,
        island=island,
        parent=parent,
        operator="rewrite",
        answer=f"answer {iteration}.{index}",
        answer_ids=(iteration, index),
    )


def outcome(iteration: int, *, island: int) -> IterationOutcome:
    return IterationOutcome(
        island=island,
        iteration=iteration,
        parent="initial",
        children=K,
        improved=iteration % 2,
        model_seconds=1.0 + iteration / 8,
        computed_tokens=100,
        repeated_tokens=20,
        decode_steps=10,
        generated_tokens=24,
        evaluation_seconds=0.1,
    )


def iterate(
    search: Search, iteration: int, *scores: float | None, island: int, parent: str = INITIAL
) -> None:
    """Tell a whole iteration."""
    for index, score in enumerate(scores):
        made = child(iteration, index, island=island, parent=parent)
        search.admit(*made)
        search.tell(made[0].id, verdict(score))
    search.finish(outcome(iteration, island=island))


def asked(search: Search, iterations: range = range(50, 58)) -> list[Proposal]:
    """Return what each island asks for in some later iterations, with parents drawn and named."""
    return [
        search.ask(number, island=island)
        for island in range(search.islands)
        for number in iterations
    ]


def parents(search: Search, island: int) -> set[str]:
    """Return who may be a parent on an island."""
    return {search.ask(number, island=island).parent.id for number in range(1000, 1300)}


# Islands.


def test_islands_draw_differently_and_keep_to_their_own_programs() -> None:
    search = new_search(count=3)
    assert search.islands == 3
    for iteration in range(6):
        iterate(search, iteration, 0.6, 0.7, None, island=iteration % 3)
    for island in range(3):
        own = {f"{number}.{index}" for number in (island, island + 3) for index in (0, 1)}
        assert parents(search, island) == {INITIAL, *own}
        proposal = search.ask(50, island=island)
        assert proposal.island == island
        assert {each.id for each in proposal.history} <= {INITIAL, *own}
    assert len({search.ask(50, island=island).seed for island in range(3)}) == 3


def test_nothing_that_is_told_of_an_island_changes_what_another_asks() -> None:
    search = new_search(count=2, layout="transcript")
    iterate(search, 0, 0.6, 0.7, None, island=1)
    before = [each for each in asked(search) if each.island == 1]
    for iteration in range(1, 9):
        iterate(search, iteration, 0.9, None, None, island=0)
    search.admit(*child(9, 0, island=0))
    assert [each for each in asked(search) if each.island == 1] == before


def test_islands_begin_alike_but_for_chance() -> None:
    search = new_search(count=4)
    proposals = [search.ask(island, island=island) for island in range(4)]
    assert {each.parent.id for each in proposals} == {INITIAL}
    assert {tuple(c.id for c in each.history) for each in proposals} == {(INITIAL,)}
    assert len({each.seed for each in proposals}) == 4


def test_each_island_has_a_width_of_its_own() -> None:
    search = new_search(count=2)
    for iteration in range(6):
        search.finish(outcome(2 * iteration, island=0))  # of which none improved
    assert [search.ask(20, island=island).k for island in range(2)] == [7, 5]
    drawn = new_search(count=2, width=WIDTHS.read({"policy": "cost_aware", "k_max": 9}))
    ks = [[drawn.ask(number, island=i).k for number in range(12)] for i in range(2)]
    assert ks[0] != ks[1] and all(1 <= k <= 9 for of_island in ks for k in of_island)


def test_pending_programs_are_those_of_the_island() -> None:
    search = new_search(count=2)
    for name in ((3, 1, 0), (2, 0, 1), (3, 0, 0), (1, 2, 0)):
        search.admit(*child(*name[:2], island=name[2]))
    waiting = [[each.id for each in search.ask(9, island=i).pending] for i in range(2)]
    assert waiting == [["1.2", "3.0", "3.1"], ["2.0"]]


def test_a_duplicate_is_recognised_over_all_islands() -> None:
    search = new_search(count=2)
    made, call = child(0, 0, island=1)
    search.admit(made, call)
    parent = search.ask(0, island=0).parent
    assert search.refusal(made.program, parent=parent.id) is Refusal.DUPLICATE


@pytest.mark.parametrize("island", [-1, 2])
def test_an_island_that_is_not_there_is_an_error(island: int) -> None:
    search = new_search(count=2)
    before = asked(search)
    for call in (
        lambda: search.ask(0, island=island),
        lambda: search.admit(*child(0, 0, island=island)),
    ):
        with pytest.raises(ValueError, match=f"no island {island}; there are 2"):
            call()
    with pytest.raises(ValueError, match="no island 2; there are 2"):
        search.finish(outcome(0, island=2))
    assert asked(search) == before


# Migration.


def test_the_best_go_round_the_ring_by_hand() -> None:
    """Two migrants after every second iteration of three islands."""
    search = new_search(count=3, every=2, migrants=2)
    iterate(search, 0, 0.6, 0.7, 0.8, island=0)
    assert parents(search, 1) == {INITIAL}
    iterate(search, 1, 0.1, None, None, island=1)
    iterate(search, 2, 0.75, None, None, island=0)
    assert parents(search, 1) == {INITIAL, "1.0", "0.2", "2.0"}  # 0.8 and 0.75
    assert parents(search, 2) == {INITIAL}
    iterate(search, 3, 0.2, None, None, island=1)
    # Its own two, though it has better migrants.
    assert parents(search, 2) == {INITIAL, "1.0", "3.0"}
    iterate(search, 4, None, None, None, island=2)
    iterate(search, 5, 0.9, None, None, island=2)
    assert parents(search, 0) == {INITIAL, "0.0", "0.1", "0.2", "2.0", "5.0"}
    iterate(search, 6, 0.95, None, None, island=0)
    assert "6.0" not in parents(search, 1)
    iterate(search, 7, 0.96, None, None, island=0)
    assert parents(search, 1) == {INITIAL, "1.0", "3.0", "0.2", "2.0", "6.0", "7.0"}


def test_where_scores_are_minimised_the_lowest_migrate() -> None:
    search = new_search(count=2, every=1, migrants=1, direction=Direction.MINIMISE)
    iterate(search, 0, 0.6, 0.2, 0.8, island=1)
    assert parents(search, 0) == {INITIAL, "0.1"}


@pytest.mark.parametrize(("count", "every"), [(1, 1), (2, 0)])
def test_there_is_no_migration_on_one_island_or_when_it_is_off(count: int, every: int) -> None:
    search = new_search(count=count, every=every)
    for iteration in range(4):
        iterate(search, iteration, 0.6, island=0)
    assert [parents(search, island) - {INITIAL} for island in range(1, count)] == [set()] * (
        count - 1
    )
    assert len(parents(search, 0)) == 5


def test_a_migrants_lineage_and_its_heirs_lead_back_to_its_own_island() -> None:
    search = new_search(count=2, every=1, layout="transcript")
    iterate(search, 0, None, 0.7, island=0)
    iterate(search, 1, None, 0.8, island=0, parent="0.1")
    search.admit(*child(2, 0, island=1, parent="1.1"))
    search.tell("2.0", verdict(0.9))
    proposal = search.ask(9, island=1, parent_id="2.0")
    assert [turn.candidate.id for turn in proposal.lineage] == [INITIAL, "0.1", "1.1"]
    assert search.ask(9, island=1, parent_id=INITIAL).failures == ()
    assert len(search.ask(9, island=0, parent_id=INITIAL).failures) == 1


# The fold.


@dataclass(frozen=True)
class Event:
    """What the search is told of an island: a child, a verdict, or that an iteration is over."""

    island: int
    made: tuple[Child, Call] | None = None
    told: tuple[str, Evaluation] | None = None
    outcome: IterationOutcome | None = None

    def tell(self, search: Search) -> None:
        if self.made is not None:
            search.admit(*self.made)
        if self.told is not None:
            search.tell(*self.told)
        if self.outcome is not None:
            search.finish(self.outcome)


def history_of(rng: random.Random, *, count: int, iterations: int) -> list[list[list[Event]]]:
    """Return each island's iterations, each a list of events that ends with its outcome."""
    made: list[list[list[Event]]] = [[] for _ in range(count)]
    parents: list[list[str]] = [[INITIAL] for _ in range(count)]
    for iteration in range(iterations):
        island = rng.randrange(count)
        events, valid = [], []
        parent = rng.choice(parents[island])
        for index in range(K):
            born_now = child(iteration, index, island=island, parent=parent)
            name = born_now[0].id
            score = rng.choice([None, *(number / 8 for number in range(9))])
            events += [Event(island, made=born_now), Event(island, told=(name, verdict(score)))]
            valid += [name] if score is not None else []
        parents[island] += valid
        made[island].append([*events, Event(island, outcome=outcome(iteration, island=island))])
    return made


def shuffled(iteration: list[Event], rng: random.Random) -> list[Event]:
    """Return an iteration in which siblings finish and are judged in another order.

    A verdict follows its admission, the outcome is the last, and some are told twice.
    """
    pairs = [iteration[place : place + 2] for place in range(0, len(iteration) - 1, 2)]
    left, events = [list(pair) for pair in pairs], []
    while left:
        pair = rng.choice(left)
        events.append(pair.pop(0))
        events += [rng.choice(events)] if rng.random() < 0.3 else []
        left = [each for each in left if each]
    return [*events, iteration[-1]]


def interleaved(history: list[list[list[Event]]], rng: random.Random) -> list[Event]:
    lanes = [
        [event for iteration in island for event in shuffled(iteration, rng)] for island in history
    ]
    events = []
    while lanes := [lane for lane in lanes if lane]:
        events.append(rng.choice(lanes).pop(0))
    return events


def told(events: Sequence[Event], *, layout: str, meddle: random.Random | None = None) -> Search:
    """Return a search that was told the events, and asked between them."""
    search = new_search(count=3, every=2, migrants=2, layout=layout)
    for event in events:
        event.tell(search)
        if meddle is not None:
            number, island = meddle.randrange(100), meddle.randrange(3)
            begun = search.ask(number, island=island)
            search.ask(number + 1, island=island, parent_id=INITIAL, begun=[begun])
    return search


@pytest.mark.parametrize("layout", ["stable", "classic", "transcript"])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_asked_later_does_not_depend_on_the_interleaving(layout: str, seed: int) -> None:
    rng = random.Random(seed)
    history = history_of(rng, count=3, iterations=24)
    in_order = [event for island in history for iteration in island for event in iteration]
    expected = told(in_order, layout=layout)
    for attempt in range(3):
        meddle = rng if attempt == 2 else None
        search = told(interleaved(history, rng), layout=layout, meddle=meddle)
        assert asked(search) == asked(expected)


@pytest.mark.parametrize("seed", range(8))
def test_a_log_that_is_told_again_asks_at_each_point_what_was_asked(seed: int) -> None:
    rng = random.Random(seed)
    events = interleaved(history_of(rng, count=3, iterations=12), rng)
    for end in rng.sample(range(len(events)), 6):
        alive = told(events[:end], layout="stable", meddle=rng)
        assert asked(told(events[:end], layout="stable"), range(50, 53)) == asked(
            alive, range(50, 53)
        )


# What no call made.

FILL = read("def f(x):\n    return x * 1000\n")


def adaevolve_search(**given: float) -> Search:
    """Return a search of two islands under the bandit, told of the initial program, 0.5."""
    schedule = {"policy": "adaevolve", **given}
    search = Search(
        settings=SETTINGS,
        width=TURBOEVOLVE,
        islands=replace(ISLANDS, count=2, migrate_every=2, schedule=schedule),  # type: ignore[arg-type]
        prompts=PROMPTS,
        direction=Direction.MAXIMISE,
        seed=5,
        size=lambda _: 1,
        tactician=Tactician(
            TacticsSettings(when="stagnation", window=3, below=0.34, ideas=1, uses=1, tokens=100),
            direction=Direction.MAXIMISE,
            shown_by=SETTINGS.operators,
        ),
    )
    search.begin_with(INITIAL, read("def f(x):\n    return x\n"), score=0.5)
    return search


@pytest.mark.parametrize(("joins", "next_island"), [(False, 0), (True, 1)])
def test_a_program_that_joins_has_to_be_beaten_and_earns_its_island_nothing(
    joins: bool, next_island: int
) -> None:
    """Island 0's child of 0.7 earns it the next turn, unless a fill was as good before."""
    search = adaevolve_search()
    if joins:
        search.join("fill", FILL, score=0.7, index=1, island=0)
    iterate(search, 0, 0.7, None, None, island=0)
    iterate(search, 1, 0.55, None, None, island=1)
    assert search.scheduled([0, 1]) == (next_island,)


@pytest.mark.parametrize("joins", [False, True])
def test_tactics_are_due_where_no_child_is_better_than_a_program_that_joined(joins: bool) -> None:
    search = adaevolve_search()
    if joins:
        search.join("fill", FILL, score=0.9, index=1, island=0)
    iterate(search, 0, 0.6, 0.7, None, island=0)
    assert search.wants_tactics is joins


def test_calls_with_an_idea_for_a_stagnation_change_the_best_program_of_all_islands() -> None:
    search = adaevolve_search()
    iterate(search, 0, 0.7, None, None, island=0)
    iterate(search, 1, 0.6, None, None, island=1)
    search.advise(
        Tactics(
            number=0,
            ideas=("sort first",),
            answer="- sort first",
            prompt_tokens=9,
            cached_prompt_tokens=0,
            generated_tokens=3,
            llm_seconds=0.1,
        )
    )
    for number in range(2, 12):
        proposal = search.ask(number, island=1)
        assert (proposal.parent.id, proposal.tactics) == ("0.0", "sort first")
    search.begin(child(2, 0, island=1)[1])
    used_up = [search.ask(number, island=1) for number in range(3, 40)]
    assert {each.parent.id for each in used_up} == {INITIAL, "1.0"}
    assert {each.tactics for each in used_up} == {""}


def test_a_program_that_joins_no_island_is_an_error_and_changes_nothing() -> None:
    search = adaevolve_search()
    with pytest.raises(ValueError, match="no island 2; there are 2"):
        search.join("fill", FILL, score=0.9, index=1, island=2)
    assert search.known_as(FILL) is None


def test_a_schedule_says_whose_turn_it_is_and_opens_islands() -> None:
    search = adaevolve_search(below=0.5, every=3, most=3)
    assert search.scheduled([0, 1]) == (0,)
    assert search.scheduled([1]) == ()
    iterate(search, 0, 0.4, 0.3, None, island=0)  # 1 of 4 improved, the initial one
    assert search.islands == 3 and search.scheduled([0, 1, 2]) == (1,)
    assert search.ask(1, island=2).parent.id in {INITIAL, "0.0", "0.1"}
    assert {each.id for each in search.programs(2)} == {INITIAL, "0.0", "0.1"}
    iterate(search, 2, 0.1, 0.1, None, island=1)
    assert search.islands == 3  # the most
    iterate(search, 3, 0.9, None, None, island=2)
    iterate(search, 4, 0.2, None, None, island=2)
    assert "3.0" in {each.id for each in search.programs(0)}  # the ring goes through it
