"""A run's state as a fold of its events: what the search knows when, island by island."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from states import state_of

from engine import config
from engine.core import INITIAL, Evaluation, Failure, Fill, Refusal
from engine.pipeline import RunState
from engine.store import Call, Child, Event, GivenUp, Recorded, Session, Verdict
from engine.syntax import read

SETTINGS = config.resolve(
    [
        *("islands.count=2", "islands.migrate_every=1", "islands.migrants=1"),
        *("prompts.layout=stable", "prompts.history_tokens=1000", "search.k=2"),
        *("search.parent.p_elite=1.0", "search.parent.p_uniform=0.0", "search.failures=2"),
    ]
)
BEGINNING: list[Event] = [
    Session(number=0, engine="0", fingerprint="f"),
    Verdict(candidate=INITIAL, evaluation=Evaluation(score=0.5, failure=None), program="x = 0\n"),
]


def new_state(events: Sequence[Event] = (), *, migrate_every: int = 1) -> RunState:
    state = state_of(
        replace(SETTINGS, islands=replace(SETTINGS.islands, migrate_every=migrate_every)), workers=2
    )
    fold(state, *events)
    return state


def fold(state: RunState, *events: Event) -> None:
    for event in events:
        state.fold(Recorded(session=0, elapsed=0.0, event=event))


def call(iteration: int, *, island: int, parent: str = INITIAL) -> Call:
    return Call(
        iteration=iteration,
        island=island,
        parent=parent,
        rule="elite",
        operator="infill",
        k=2,
        known=2,
        guessed=False,
        prompt="",
        prompt_tokens=9,
        temperatures=(),
        seeds=(),
    )


def child(name: str, *, parent: str = INITIAL, refusal: Refusal | None = None) -> Child:
    iteration, index = map(int, name.split("."))
    return Child(
        id=name,
        iteration=iteration,
        index=index,
        parent=parent,
        operator="infill",
        completion=f"answer {name}",
        completion_ids=(iteration, index),
        finish_reason="stop",
        program=None if refusal is Refusal.UNPARSED else read(f"x = {iteration} + {index}\n"),
        refusal=refusal,
        prompt_tokens=9,
        cached_prompt_tokens=4,
        llm_seconds=0.5,
    )


def verdict(name: str, score: float | None) -> Verdict:
    failure = Failure.ERROR if score is None else None
    return Verdict(
        candidate=name,
        evaluation=Evaluation(score=score, failure=failure, message="" if score else name),
    )


def test_the_search_knows_what_is_recorded_and_when() -> None:
    state = new_state(BEGINNING)
    assert state.search.ask(0, island=0).parent.id == INITIAL
    fold(state, call(0, island=0), child("0.1"), child("0.0", refusal=Refusal.DUPLICATE))
    asked = state.search.ask(1, island=0)
    assert [each.id for each in asked.pending] == ["0.1"]
    assert state.search.ask(1, island=1).pending == ()
    assert state.is_open(0) and not state.is_open(1)
    fold(state, verdict("0.1", 0.75))
    asked = state.search.ask(1, island=0)
    assert (asked.parent.id, asked.pending) == ("0.1", ())
    assert [each.id for each in asked.history] == [INITIAL, "0.1"]
    assert not state.is_open(0)
    # It was the island's best when its first iteration was over, so it went on to the next one.
    assert state.search.ask(1, island=1).parent.id == "0.1"
    assert state.history.events == 6


def test_an_iteration_without_a_candidate_is_over_with_its_last_child() -> None:
    state = new_state([*BEGINNING, call(0, island=1), child("0.0", refusal=Refusal.UNPARSED)])
    assert state.is_open(1)
    fold(state, child("0.1", refusal=Refusal.BUDGET))
    assert not state.is_open(1)


def test_a_child_is_no_duplicate_of_a_fill_before_that_is_judged() -> None:
    """Once it is admitted, everything else that is the same is a duplicate of the child."""
    program = child("0.0").program
    assert program is not None
    fill = Fill(
        number=0, maker="mutation", parent=INITIAL, island=0, sample=0, program=program, joins=True
    )
    state = new_state([*BEGINNING, fill])
    assert state.search.refusal(program, parent=INITIAL) is None
    assert state.search.known_as(program) == fill.id
    judged = new_state([*BEGINNING, fill, verdict(fill.id, None)])
    assert judged.search.refusal(program, parent=INITIAL) is Refusal.DUPLICATE
    fold(state, call(0, island=0), child("0.0"))
    assert state.search.refusal(program, parent=INITIAL) is Refusal.DUPLICATE
    assert state.search.known_as(program) == "0.0"


def test_what_failed_is_shown_to_its_own_island() -> None:
    state = new_state([*BEGINNING, call(0, island=1), child("0.0"), child("0.1")])
    fold(state, verdict("0.1", None), verdict("0.0", 0.25))
    (attempt,) = state.search.ask(1, island=1).failures
    assert (attempt.program, attempt.evaluation.message) == ("x = 0 + 1\n", "0.1")
    assert state.search.ask(1, island=0).failures == ()


def test_in_turns_the_island_whose_last_call_lies_back_furthest_is_next() -> None:
    state = new_state(BEGINNING)
    assert state.next_of([]) is None
    assert state.next_of([1, 0]) == 0  # of equal ones the first
    fold(state, call(0, island=0))
    assert state.next_of([0, 1]) == 1
    fold(state, call(1, island=1), call(3, island=0))
    assert state.next_of([0, 1]) == 1
    assert state.next_of([0]) == 0


def test_a_guess_given_up_changes_nothing_but_the_account() -> None:
    events = [*BEGINNING, call(0, island=0), child("0.0")]
    plain, other = new_state(events), new_state(events)
    lost = GivenUp(
        iteration=1,
        attempt=0,
        island=0,
        parent="0.0",
        generated_tokens=7,
        prompt_tokens=9,
        cached_prompt_tokens=3,
        llm_seconds=0.5,
    )
    fold(other, lost)
    for island in (0, 1):
        assert other.search.ask(1, island=island) == plain.search.ask(1, island=island)
        assert other.is_open(island) == plain.is_open(island)
    assert (other.history.given_up, other.history.events) == ([lost], plain.history.events + 1)
    assert other.history.generated_tokens == plain.history.generated_tokens


@pytest.mark.parametrize("seed", range(20))
def test_the_order_in_which_islands_and_siblings_are_told_changes_no_island(seed: int) -> None:
    """Where nothing migrates: migrants arrive when their island has finished."""
    rng = random.Random(seed)
    islands: dict[int, list[list[Event]]] = {}
    for island in (0, 1):
        islands[island] = []
        for iteration in range(island, 8, 2):
            names = [f"{iteration}.{index}" for index in range(2)]
            scores = [rng.choice([None, rng.random()]) for _ in names]
            islands[island].append([call(iteration, island=island)])
            islands[island].append([child(name) for name in names])
            islands[island].append([verdict(*each) for each in zip(names, scores, strict=True)])
    states = [told(islands, rng) for _ in range(4)]
    for island in (0, 1):
        asked = [state.search.ask(100 + island, island=island) for state in states]
        assert asked == [asked[0]] * 4
        assert len(asked[0].history) > 1


def told(islands: dict[int, list[list[Event]]], rng: random.Random) -> RunState:
    """Return a state that was told each island's phases in order, all else by chance."""
    state = new_state(BEGINNING, migrate_every=0)
    left = {island: list(phases) for island, phases in islands.items()}
    waiting: dict[int, list[Event]] = {0: [], 1: []}
    while any(left.values()) or any(waiting.values()):
        island = rng.choice([each for each in (0, 1) if left[each] or waiting[each]])
        if not waiting[island]:
            waiting[island] = rng.sample(left[island][0], len(left[island][0]))
            del left[island][0]
        fold(state, waiting[island].pop())
    return state
