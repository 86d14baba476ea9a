"""The population: how a candidate came to be, and what is known of the iterations before one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core import INITIAL, Attempt, Candidate, Evaluation, Failure, Turn
from engine.search import FIRST_ITERATION, Entry
from engine.search.population import Population


def program(name: str) -> str:
    return f"def f(x):\n    return x + {len(name)}  # {name}\n"


def valid(score: float) -> Evaluation:
    return Evaluation(score=score, failure=None)


def failed(message: str) -> Evaluation:
    return Evaluation(score=None, failure=Failure.ERROR, message=message)


def entry(name: str, parent: str, *, operator: str = "rewrite") -> Entry:
    iteration, index = map(int, name.split("."))
    return Entry(
        id=name,
        program=program(name),
        iteration=iteration,
        parent=parent,
        operator=operator,
        answer=f"answer {name}",
        answer_ids=(iteration, index),
    )


def grown() -> Population:
    """Return a population in which 3.0 came of 1.1, which came of the initial program."""
    population = Population()
    population.admit(Entry(id=INITIAL, program=program(INITIAL)))
    population.tell(INITIAL, valid(0.5))
    for each, verdict in (
        (entry("0.0", INITIAL), failed("a")),
        (entry("0.1", INITIAL, operator="diff"), failed("b")),
        (entry("1.0", INITIAL), failed("c")),
        (entry("1.1", INITIAL, operator="diff"), valid(0.625)),
        (entry("2.0", INITIAL), failed("d")),
        (entry("2.1", "1.1"), failed("e")),
        (entry("3.0", "1.1"), valid(0.75)),
        (entry("3.1", "1.1"), failed("f")),
    ):
        population.admit(each)
        population.tell(each.id, verdict)
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
    with pytest.raises(KeyError):
        grown().lineage("9.9", failures=2)


def test_a_lineage_stays_as_it_was_whatever_is_told_of_later_iterations() -> None:
    population = grown()
    before = population.lineage("3.0", failures=9)
    for name, parent in (("4.0", INITIAL), ("4.1", "1.1"), ("5.0", "3.0")):
        population.admit(entry(name, parent))
        population.tell(name, failed("late"))
    assert population.lineage("3.0", failures=9) == before


def test_arrivals_are_the_candidates_of_a_span_of_iterations_as_they_were_admitted() -> None:
    population = grown()

    def names(first: int, before: int) -> list[tuple[int, str]]:
        arrived = population.arrivals(first=first, before=before)
        return [(iteration, candidate.id) for iteration, candidate in arrived]

    assert names(FIRST_ITERATION, 4) == [(-1, INITIAL), (1, "1.1"), (3, "3.0")]
    assert names(FIRST_ITERATION, 1) == [(-1, INITIAL)]
    assert names(1, 3) == [(1, "1.1")]
    assert names(2, 3) == [] and names(4, 4) == []


def test_failures_are_those_of_the_parent_before_an_iteration() -> None:
    population = grown()
    assert population.failures("1.1", before=4, most=9) == (
        Attempt(program=program("2.1"), evaluation=failed("e")),
        Attempt(program=program("3.1"), evaluation=failed("f")),
    )
    assert population.failures("1.1", before=4, most=1)[0].evaluation.message == "f"
    assert population.failures("1.1", before=2, most=9) == ()
    assert population.failures("3.0", before=9, most=9) == ()
    assert population.failures(INITIAL, before=9, most=0) == ()


def test_where_a_program_came_from_is_known_before_its_verdict() -> None:
    population = grown()
    population.admit(entry("4.0", "3.0"))
    assert [population.iteration_of(name) for name in (INITIAL, "3.1", "4.0")] == [-1, 3, 4]
    assert all(each.id != "4.0" for each in population.candidates())


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.booleans(), st.floats(0, 1)), max_size=40),
    st.integers(0, 3),
)
def test_each_turn_of_a_lineage_leads_to_the_next(
    children: list[tuple[int, bool, float]], most: int
) -> None:
    population = Population()
    population.admit(Entry(id=INITIAL, program=program(INITIAL)))
    population.tell(INITIAL, valid(0.0))
    parents = {INITIAL: ""}
    for number, (choice, is_valid, score) in enumerate(children):
        known = list(parents)
        name, parent = f"{number}.0", known[choice % len(known)]
        population.admit(entry(name, parent))
        population.tell(name, valid(score) if is_valid else failed("no"))
        if is_valid:
            parents[name] = parent
    for candidate in population.candidates():
        turns = population.lineage(candidate.id, failures=most)
        results: list[Candidate] = [*(turn.candidate for turn in turns[1:]), candidate]
        for turn, result in zip(turns, results, strict=False):
            assert parents[result.id] == turn.candidate.id
            assert turn.answer == f"answer {result.id}"
            assert len(turn.failures) <= most
        assert not turns or turns[0].candidate.id == INITIAL
