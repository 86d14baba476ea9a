"""The population: how a candidate came to be, what failed, and that order means nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from births import born
from hypothesis import given
from hypothesis import strategies as st

from engine.core import INITIAL, Attempt, Call, Candidate, Child, Evaluation, Failure, Turn
from engine.search.population import Population
from engine.syntax import read


def program(name: str) -> str:
    return f"def f(x):\n    return x + {len(name)}  # {name}\n"


def valid(score: float) -> Evaluation:
    return Evaluation(score=score, failure=None)


def failed(message: str) -> Evaluation:
    return Evaluation(score=None, failure=Failure.ERROR, message=message)


def child(
    name: str, parent: str, *, operator: str = "rewrite", island: int = 0
) -> tuple[Child, Call]:
    iteration, index = map(int, name.split("."))
    return born(
        id=name,
        program=read(program(name)),
        iteration=iteration,
        index=index,
        island=island,
        parent=parent,
        operator=operator,
        answer=f"answer {name}",
        answer_ids=(iteration, index),
    )


GROWN = (
    (child("0.0", INITIAL), failed("a")),
    (child("0.1", INITIAL, operator="diff"), failed("b")),
    (child("1.0", INITIAL), failed("c")),
    (child("1.1", INITIAL, operator="diff"), valid(0.625)),
    (child("2.0", INITIAL), failed("d")),
    (child("2.1", "1.1"), failed("e")),
    (child("3.0", "1.1"), valid(0.75)),
    (child("3.1", "1.1"), failed("f")),
)


def grown(*, order: Sequence[int] = range(len(GROWN))) -> Population:
    """Return a population in which 3.0 came of 1.1, which came of the initial program."""
    population = new_population(0.5)
    for place in order:
        population.admit(*GROWN[place][0])
    for place in order[::-1]:
        population.tell(GROWN[place][0][0].id, GROWN[place][1])
    return population


def new_population(score: float) -> Population:
    """Return a population of the initial program."""
    population = Population()
    first = read(program(INITIAL))
    assert first is not None
    population.begin_with(INITIAL, first, score=score, index=0, cell=None)
    return population


def shown(turn: Turn) -> tuple[str, str, float, str, str, tuple[int, ...]]:
    failures = "".join(each.evaluation.message for each in turn.failures)
    candidate = turn.candidate
    return (
        candidate.id,
        turn.operator,
        candidate.score,
        failures,
        turn.answer,
        turn.answer_ids,
    )


def test_a_lineage_has_each_step_as_it_was_asked_from_the_first_program_on() -> None:
    assert [shown(turn) for turn in grown().lineage("3.0", failures=9)] == [
        # Only what had failed before the iteration that asked: not c, of the same one, nor d.
        (INITIAL, "diff", 0.5, "ab", "answer 1.1", (1, 1)),
        ("1.1", "rewrite", 0.625, "e", "answer 3.0", (3, 0)),
    ]
    assert [turn.candidate.program for turn in grown().lineage("3.0", failures=0)] == [
        program(INITIAL),
        program("1.1"),
    ]
    assert [shown(turn)[3] for turn in grown().lineage("3.0", failures=1)] == ["b", "e"]


def test_the_first_program_has_no_lineage() -> None:
    assert grown().lineage(INITIAL, failures=2) == ()


def test_a_lineage_stays_as_it_was_whatever_is_told_of_later_iterations() -> None:
    population = grown()
    before = population.lineage("3.0", failures=9)
    for name, parent in (("4.0", INITIAL), ("4.1", "1.1"), ("5.0", "3.0")):
        population.admit(*child(name, parent))
        population.tell(name, failed("late"))
    assert population.lineage("3.0", failures=9) == before


def shown_failures(
    population: Population, parent: str, *, most: int = 9, before: int | None = None
) -> str:
    attempts = population.failures(parent, island=0, most=most, before=before)
    return "".join(each.evaluation.message for each in attempts)


def test_failures_are_the_last_ones_of_the_parent() -> None:
    population = grown()
    assert population.failures("1.1", island=0, most=9) == (
        Attempt(id="2.1", program=program("2.1"), evaluation=failed("e")),
        Attempt(id="3.1", program=program("3.1"), evaluation=failed("f")),
    )
    assert shown_failures(population, "1.1", most=1) == "f"
    assert shown_failures(population, "1.1", before=3) == "e"
    assert shown_failures(population, "1.1", before=2) == ""
    assert shown_failures(population, "3.0") == ""
    assert shown_failures(population, INITIAL) == "abcd"
    assert shown_failures(population, INITIAL, most=2, before=2) == "bc"
    assert shown_failures(population, INITIAL, most=0) == ""


def test_failures_are_those_of_one_island() -> None:
    population = grown()
    for name in ("4.0", "5.0"):
        population.admit(*child(name, INITIAL, island=1))
    population.tell("4.0", failed("x"))
    population.admit(*child("6.0", "5.0", island=1))
    population.tell("5.0", valid(0.1))
    population.tell("6.0", valid(0.2))
    assert shown_failures(population, INITIAL) == "abcd"
    assert population.failures(INITIAL, island=1, most=9) == (
        Attempt(id="4.0", program=program("4.0"), evaluation=failed("x")),
    )
    assert population.failures(INITIAL, island=2, most=9) == ()
    assert [shown(turn)[3] for turn in population.lineage("6.0", failures=9)] == ["x", ""]


@given(st.permutations(range(len(GROWN))))
def test_the_order_of_admission_and_of_verdicts_does_not_matter(order: list[int]) -> None:
    one, other = grown(), grown(order=order)
    for name in (INITIAL, "1.1", "3.0"):
        assert shown_failures(one, name) == shown_failures(other, name)
        assert one.lineage(name, failures=2) == other.lineage(name, failures=2)


def test_admitting_and_telling_say_whether_it_is_new() -> None:
    population = Population()
    assert population.admit(*child("0.0", INITIAL))
    assert not population.admit(*child("0.0", "another"))
    assert population.parent_of("0.0") == INITIAL
    assert population.awaited("0.0") == child("0.0", INITIAL)[0]
    assert population.tell("0.0", failed("a")) is None
    assert population.awaited("0.0") is None
    with pytest.raises(KeyError, match="never admitted"):
        population.awaited("0.1")
    with pytest.raises(ValueError, match="no valid candidate"):
        population.candidate("0.0")


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.booleans(), st.floats(0, 1)), max_size=40),
    st.integers(0, 3),
)
def test_each_turn_of_a_lineage_leads_to_the_next(
    children: list[tuple[int, bool, float]], most: int
) -> None:
    population = new_population(0.0)
    parents = {INITIAL: ""}
    for number, (choice, is_valid, score) in enumerate(children):
        known = list(parents)
        name, parent = f"{number}.0", known[choice % len(known)]
        population.admit(*child(name, parent))
        population.tell(name, valid(score) if is_valid else failed("no"))
        if is_valid:
            parents[name] = parent
    for candidate in map(population.candidate, parents):
        turns = population.lineage(candidate.id, failures=most)
        results: list[Candidate] = [*(turn.candidate for turn in turns[1:]), candidate]
        for turn, result in zip(turns, results, strict=False):
            assert parents[result.id] == turn.candidate.id
            assert turn.answer == f"answer {result.id}"
            assert len(turn.failures) <= most
        assert not turns or turns[0].candidate.id == INITIAL
