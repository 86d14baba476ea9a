"""What a prompt says it shows: the programs that can be read in it, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from words import STABLE, Words

from engine.core import Attempt, Candidate, Evaluation, Failure, Pending, Problem, Proposal, Turn
from engine.problem import load_problem, shipped
from engine.prompts import OPERATORS, make_operators
from engine.settings import PromptSettings

CLASSIC = replace(STABLE, layout="classic")
TRANSCRIPT = replace(STABLE, layout="transcript")
CHAT = ("rewrite", "diff", "crossover", "repair")


@pytest.fixture(scope="module")
def problem() -> Problem:
    return replace(load_problem(Path(shipped()["signal"])), statement="Make f good.")


def program(name: str) -> str:
    return f"def f(x):\n    return x + {name}_\n"


def candidate(name: str) -> Candidate:
    return Candidate(id=name, program=program(name), score=0.25)


def attempt(name: str) -> Attempt:
    evaluation = Evaluation(score=None, failure=Failure.TIMEOUT, message="late")
    return Attempt(id=name, program=program(name), evaluation=evaluation)


def turn(name: str, operator: str = "rewrite", **shown: object) -> Turn:
    blank = Turn(
        candidate=candidate(name), operator=operator, failures=(), answer="so", answer_ids=(1,)
    )
    return replace(blank, **shown)


PROPOSAL = Proposal(
    iteration=3,
    parent=candidate("p"),
    history=(candidate("h1"), candidate("h2")),
    operator="rewrite",
    k=2,
    seed=1,
    pending=(Pending(id="w", program=program("w")),),
    failures=(attempt("f1"), attempt("f2")),
)
PARTNER, BROKEN = candidate("q"), attempt("b")


def shown(
    problem: Problem, proposal: Proposal, prompts: PromptSettings, *, room: int = 10_000
) -> Sequence[str]:
    operators = make_operators(
        OPERATORS.names, problem=problem, tokenizer=Words(room), max_tokens=100, prompts=prompts
    )
    return operators[proposal.operator].compose(proposal).shows


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [
        (CLASSIC, ["p", "h1", "h2", "w", "f1", "f2"]),
        (STABLE, ["h1", "h2", "w", "p", "f1", "f2"]),
        (TRANSCRIPT, ["p", "w", "f1", "f2"]),
    ],
    ids=["classic", "stable", "transcript"],
)
def test_a_chat_shows_them_in_the_order_of_its_layout(
    problem: Problem, prompts: PromptSettings, expected: list[str]
) -> None:
    for name in ("rewrite", "diff"):
        assert [*shown(problem, replace(PROPOSAL, operator=name), prompts)] == expected
    crossed = shown(problem, replace(PROPOSAL, operator="crossover", partner=PARTNER), prompts)
    repaired = shown(problem, replace(PROPOSAL, operator="repair", repairs=BROKEN), prompts)
    assert [*crossed] == [*expected[:-2], "q", *expected[-2:]]
    assert [*repaired] == [*expected[:-2], "b", *expected[-2:]]


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [(CLASSIC, ["p", "h1", "h2", "w"]), (STABLE, ["h1", "h2", "w", "p"])],
    ids=["classic", "stable"],
)
def test_an_infill_shows_no_failed_attempts(
    problem: Problem, prompts: PromptSettings, expected: list[str]
) -> None:
    assert [*shown(problem, replace(PROPOSAL, operator="infill"), prompts)] == expected


def test_a_program_counts_once_where_it_is_first_shown(problem: Problem) -> None:
    asked = replace(PROPOSAL, history=(candidate("h1"), PROPOSAL.parent, PARTNER), failures=())
    crossed = replace(asked, operator="crossover", partner=PARTNER)
    assert [*shown(problem, crossed, STABLE)] == ["h1", "p", "q", "w"]


def test_a_transcript_shows_what_its_turns_showed_and_led_to(problem: Problem) -> None:
    lineage = (
        turn("t0", failures=(attempt("f0"),)),
        turn("t1", "crossover", partner=PARTNER),
        turn("t2", "repair", repairs=BROKEN),
    )
    asked = replace(PROPOSAL, lineage=lineage, failures=())
    expected = ["t0", "f0", "t1", "q", "t2", "b", "p", "w"]
    assert [*shown(problem, asked, TRANSCRIPT)] == expected
    # After a turn of another kind the conversation begins anew, with the program reached by then.
    cut = (*lineage[:1], turn("t1", "infill"), *lineage[2:])
    assert [*shown(problem, replace(asked, lineage=cut), TRANSCRIPT)] == ["t2", "b", "p", "w"]
    infill = replace(asked, operator="infill", history=(), pending=())
    assert [*shown(problem, infill, TRANSCRIPT)] == ["t0", "t1", "t2", "p"]


@pytest.mark.parametrize("prompts", [CLASSIC, STABLE, TRANSCRIPT], ids=lambda each: each.layout)
@pytest.mark.parametrize("name", CHAT)
def test_what_is_cut_off_for_want_of_room_is_not_shown(
    problem: Problem, prompts: PromptSettings, name: str
) -> None:
    asked = replace(
        PROPOSAL,
        operator=name,
        lineage=(turn("t0", answer=program("p")),),
        partner=PARTNER if name == "crossover" else None,
        repairs=BROKEN if name == "repair" else None,
    )
    operators = make_operators(
        OPERATORS.names, problem=problem, tokenizer=Words(), max_tokens=100, prompts=prompts
    )
    size = len(operators[name].compose(asked).token_ids) + 100
    ids = ("p", "h1", "h2", "w", "f1", "f2", "t0", "q", "b")
    seen: set[Sequence[str]] = set()
    smallest = len(operators[name].compose(_alone(asked)).token_ids) + 100
    for room in range(smallest, size + 1, 5):
        composed = make_operators(
            OPERATORS.names, problem=problem, tokenizer=Words(room), max_tokens=100, prompts=prompts
        )[name].compose(asked)
        assert set(composed.shows) == {each for each in ids if f"{each}_" in composed.text}
        seen.add(composed.shows)
    assert len(seen) >= 3


def _alone(asked: Proposal) -> Proposal:
    nothing = replace(asked, history=(), pending=(), failures=(), lineage=())
    return replace(nothing, partner=None, repairs=None)


def test_a_mutation_shows_its_parent(problem: Problem) -> None:
    assert [*shown(problem, replace(PROPOSAL, operator="mutation"), STABLE)] == ["p"]
