"""An island: the order of its candidates, its window, its migrants, and what it sends."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
from births import born

from engine.core import INITIAL, Candidate, Child, Direction, Pending
from engine.search.island import Island
from engine.search.parents import Draw, Offspring, ParentOutcome, ParentPolicy
from engine.search.parents.power import PowerSettings
from engine.search.widths import IterationOutcome, WidthPolicy
from engine.search.widths.fixed import FixedWidth
from engine.search.widths.turboevolve import TurboEvolveWidth
from engine.search.window import Window
from engine.syntax import read


def child(name: str, *, program: str = "") -> Child:
    iteration, index = map(int, name.split("."))
    made, _ = born(
        id=name, program=read(program or f"x = {name}"), iteration=iteration, index=index
    )
    return made


def scored(of: Child, score: float) -> Candidate:
    assert of.program is not None
    text = of.program.text
    return Candidate(id=of.id, program=text, score=score, iteration=of.iteration, index=of.index)


def first(score: float) -> Candidate:
    return Candidate(id=INITIAL, program="x = 0", score=score)


def outcome(iteration: int, *, improved: int = 0) -> IterationOutcome:
    return IterationOutcome(
        island=0,
        iteration=iteration,
        parent="initial",
        children=2,
        improved=improved,
        model_seconds=1.0,
        computed_tokens=10,
        repeated_tokens=2,
        decode_steps=5,
        generated_tokens=8,
        evaluation_seconds=0.1,
    )


def new_island(
    *,
    kept: int = 100,
    growth: int = 0,
    width: WidthPolicy | None = None,
    parents: ParentPolicy | None = None,
    direction: Direction = Direction.MAXIMISE,
) -> Island:
    """Return an island without a program; in its window each program has size 1."""
    window = Window(kept=kept, growth=growth, size=lambda _: 1, direction=direction)
    return Island(
        window=window,
        width=width or FixedWidth(k=4),
        parents=parents or PowerSettings(policy="power", gamma=1.0).make(direction=direction),
        direction=direction,
    )


def grow(island: Island, name: str, score: float | None, *, program: str = "") -> None:
    made = child(name, program=program)
    island.admit(made)
    island.tell(made, None if score is None else scored(made, score))


def ids(candidates: list[Candidate] | tuple[Candidate, ...]) -> list[str]:
    return [each.id for each in candidates]


def test_candidates_and_pending_programs_stand_in_their_order_whatever_came_first() -> None:
    entries = [child(name) for name in ("2.0", "2.9", "2.10", "11.0")]
    for order in itertools.permutations(entries):
        island = new_island()
        for each in order:
            island.admit(each)
        assert island.pending == tuple(Pending(id=e.id, program=e.program.text) for e in entries)
        for each in order[::-1]:
            island.tell(each, scored(each, 0.5))
        assert ids(island.candidates) == ["2.0", "2.9", "2.10", "11.0"]
        assert island.pending == ()


def test_a_verdict_without_a_score_ends_the_wait_and_makes_no_candidate() -> None:
    island = new_island()
    grow(island, "0.0", None)
    assert not island.candidates and island.pending == ()


def test_an_iteration_joins_the_window_when_it_is_over() -> None:
    island = new_island()
    grow(island, "3.1", 0.5)
    grow(island, "3.0", 0.25)
    assert island.window.shown == ()
    island.finish(outcome(3))
    assert ids(island.window.shown) == ["3.1"]
    grow(island, "7.0", 0.125)
    grow(island, "7.1", None)
    island.finish(outcome(7))
    island.finish(outcome(9))  # of which no child was worth an evaluation
    assert ids(island.window.shown) == ["3.1", "7.0"]
    assert island.finished == 3


def test_the_window_is_compacted_and_counted() -> None:
    island = new_island(kept=2, growth=1)
    for iteration in range(4):
        grow(island, f"{iteration}.0", iteration / 4)
        island.finish(outcome(iteration))
    assert len(island.window.shown) == 2 and island.window.compactions == 1


def test_the_width_learns_from_finished_iterations() -> None:
    island = new_island(width=TurboEvolveWidth())
    for iteration in range(6):
        assert island.width.k(iteration=iteration) == 5
        island.finish(outcome(iteration))
    assert island.width.k(iteration=6) == 7


@pytest.mark.parametrize("iteration", [4, 2])
def test_an_iteration_is_finished_once_and_in_order(iteration: int) -> None:
    island = new_island()
    island.finish(outcome(4))
    with pytest.raises(ValueError, match="was told after"):
        island.finish(outcome(iteration))
    assert island.finished == 1


def test_an_iteration_with_a_program_without_a_verdict_is_not_over() -> None:
    island = new_island()
    grow(island, "0.0", 0.5)
    late = child("0.1")
    island.admit(late)
    island.admit(child("1.0"))  # of a speculative call; it waits for nothing
    with pytest.raises(ValueError, match=r"iteration 0 is not over: 0\.1 has no verdict"):
        island.finish(outcome(0))
    assert island.finished == 0 and island.window.shown == ()
    island.tell(late, scored(late, 0.75))
    island.finish(outcome(0))
    assert ids(island.window.shown) == ["0.1"]


# Guests.


def test_the_initial_program_opens_the_window_and_is_never_sent() -> None:
    island = new_island()
    island.begin_with(first(9.0))
    grow(island, "0.0", 0.5)
    assert ids(island.candidates) == [INITIAL, "0.0"]
    assert ids(island.window.shown) == [INITIAL]
    assert ids(island.migrants(5)) == ["0.0"]


def test_a_guest_is_a_candidate_in_its_place_but_not_shown_and_not_sent_on() -> None:
    island = new_island()
    grow(island, "2.0", 0.5)
    migrant = scored(child("1.3"), 9.0)
    for _ in range(2):  # the second time changes nothing
        island.receive(migrant)
        assert ids(island.candidates) == ["1.3", "2.0"]
    island.finish(outcome(2))
    assert ids(island.window.shown) == ["2.0"]
    assert ids(island.migrants(5)) == ["2.0"]
    assert island.pending == () and island.finished == 1


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        (Direction.MAXIMISE, ["1.0", "0.2", "0.0", "0.1", "1.1"]),
        (Direction.MINIMISE, ["1.1", "0.2", "0.0", "0.1", "1.0"]),
    ],
)
def test_migrants_are_the_best_of_equal_ones_the_shorter_and_then_the_first(
    direction: Direction, expected: list[str]
) -> None:
    island = new_island(direction=direction)
    children = [
        ("0.0", 0.5, "x = 11"),
        ("0.1", 0.5, "x = 22"),
        ("0.2", 0.5, "x = 3"),
        ("0.3", None, ""),
        ("1.0", 0.75, "x = 1234"),
        ("1.1", 0.25, "x = 5678"),
    ]
    for seed in range(5):
        island = new_island(direction=direction)
        for name, score, program in random.Random(seed).sample(children, len(children)):
            grow(island, name, score, program=program)
        assert [ids(island.migrants(most)) for most in (1, 3, 9)] == [
            expected[:1],
            expected[:3],
            expected,
        ]


class Listener(ParentPolicy):
    """A parent policy that takes the last candidate and remembers what it was told."""

    def __init__(self) -> None:
        self.migrants: list[str] = []
        self.told: list[ParentOutcome] = []

    def choose(self, candidates: Sequence[Candidate], *, u: float, key: int) -> Draw:
        return Draw(candidate=candidates[-1], rule="last")

    def receive(self, candidate: Candidate) -> None:
        self.migrants.append(candidate.id)

    def tell(self, outcome: ParentOutcome) -> None:
        self.told.append(outcome)


def test_the_parent_policy_learns_of_guests_and_of_iterations_that_are_over() -> None:
    listener = Listener()
    island = new_island(parents=listener)
    island.begin_with(first(0.0))
    for name, score in (("1.2", 0.5), ("1.0", None)):  # in whatever order they finish
        grow(island, name, score)
    assert listener.told == []
    island.finish(outcome(1))
    migrant = scored(child("2.0"), 0.25)
    for _ in range(2):
        island.receive(migrant)
    island.finish(outcome(4))  # all its children were refused
    children = (Offspring(id="1.0", score=None), Offspring(id="1.2", score=0.5))
    assert listener.told == [
        ParentOutcome(iteration=1, parent=INITIAL, children=children),
        ParentOutcome(iteration=4, parent=INITIAL, children=()),
    ]
    assert listener.migrants == [INITIAL, "2.0"]
    drawn = island.choose(u=0.5, key=1)
    assert (drawn.candidate.id, drawn.rule) == ("2.0", "last")


def improved(island: Island, iteration: int, *scores: float | None) -> int:
    """Return how many of an iteration's children improve an island, and finish it."""
    for index, score in enumerate(scores):
        grow(island, f"{iteration}.{index}", score)
    count = island.improved(iteration)
    island.finish(outcome(iteration))
    return count


def test_without_an_archive_better_is_better_than_all_that_the_island_made_before() -> None:
    island = new_island()
    island.begin_with(first(0.5))
    # Siblings are compared with what was there before them.
    assert improved(island, 0, 0.75, None, 0.625, 0.5) == 2
    assert improved(island, 1, 0.625, 0.75) == 0
    island.receive(scored(child("2.0"), 0.9))  # made elsewhere
    assert improved(island, 3, 0.8, 0.7) == 1


def test_less_is_better_where_the_score_is_minimised() -> None:
    island = new_island(direction=Direction.MINIMISE)
    island.begin_with(first(0.5))
    assert improved(island, 0, 0.75, 0.25) == 1


def test_an_island_that_began_with_nothing_improves_with_its_first_score() -> None:
    island = new_island()
    assert improved(island, 0, None) == 0
    assert improved(island, 1, 0.25, 0.125) == 2
    assert improved(island, 2, 0.125) == 0
