"""The search's contract: ask and tell, in any order, the same again after a resume."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from engine.core import (
    INITIAL,
    Attempt,
    Candidate,
    Direction,
    Evaluation,
    Failure,
    Proposal,
    Refusal,
)
from engine.search import Search
from engine.settings import ParentSettings, SearchSettings

SETTINGS = SearchSettings(
    k=4,
    temperature_min=0.5,
    temperature_max=1.0,
    history=2,
    failures=2,
    parent=ParentSettings(p_elite=0.4, p_uniform=0.3, gamma=2.0, epsilon=0.01),
    operators={"infill": 1.0, "rewrite": 2.0, "diff": 0.0},
)


def valid(score: float) -> Evaluation:
    return Evaluation(score=score, failure=None, metrics={"score": score})


FAILED = Evaluation(score=None, failure=Failure.ERROR, message="no")


def program(number: int) -> str:
    return f"def f(x):\n    return x * {number}\n"


def search_with(
    scores: list[float | None],
    *,
    settings: SearchSettings = SETTINGS,
    direction: Direction = Direction.MAXIMISE,
    seed: int = 7,
    order: list[int] | None = None,
    every: int = 3,
) -> Search:
    """Return a search that was told ``scores``; ``every`` children make an iteration."""
    search = Search(settings=settings, direction=direction, seed=seed)
    for number in range(len(scores)):
        name = INITIAL if number == 0 else f"c{number}"
        search.admit(name, program(number), iteration=-1 if number == 0 else (number - 1) // every)
    for number in order or range(len(scores)):
        score = scores[number]
        name = INITIAL if number == 0 else f"c{number}"
        search.tell(name, FAILED if score is None else valid(score))
    return search


SCORES: list[float | None] = [0.5, 0.6, None, 0.4, 0.7, 0.1, 0.7]


def asked(search: Search, iterations: range = range(2, 40)) -> list[Proposal]:
    return [search.ask(iteration) for iteration in iterations]


def test_what_is_asked_follows_from_seed_iteration_and_what_was_told() -> None:
    search = search_with(SCORES)
    proposals = asked(search)
    assert asked(search) == proposals  # asking changes nothing
    assert asked(search_with(SCORES)) == proposals
    assert asked(search_with(SCORES, seed=8)) != proposals
    assert [each.iteration for each in proposals] == list(range(2, 40))
    assert {each.k for each in proposals} == {4}
    assert len({each.seed for each in proposals}) == len(proposals)
    assert all(0 <= each.seed < 2**63 for each in proposals)
    assert len({each.parent.id for each in proposals}) > 2


def test_the_order_of_telling_does_not_matter() -> None:
    proposals = asked(search_with(SCORES))
    orders = [random.Random(seed).sample(range(7), 7) for seed in range(10)]
    assert len(set(map(tuple, orders))) > 5
    for order in orders:
        assert asked(search_with(SCORES, order=order)) == proposals


def test_telling_and_admitting_again_changes_nothing() -> None:
    search = search_with(SCORES)
    search.tell("c1", valid(100.0))
    search.tell("c2", valid(100.0))
    search.tell("c3", FAILED)
    search.admit("c4", program(1000), iteration=0)
    assert asked(search) == asked(search_with(SCORES))
    best = search.best()
    assert best is not None and best.score == 0.7


def test_a_verdict_on_a_program_that_was_never_admitted_is_an_error() -> None:
    with pytest.raises(KeyError, match="never admitted"):
        search_with(SCORES).tell("c99", valid(1.0))


def test_an_iteration_that_was_cut_short_is_asked_again_as_it_was() -> None:
    before = [search_with(SCORES).ask(iteration) for iteration in (2, 3)]
    search = search_with(SCORES)
    search.admit("2.0", program(50), iteration=2)
    search.tell("2.0", valid(99.0))
    search.admit("2.1", program(51), iteration=2)  # its verdict is not in yet
    assert search.ask(2) == before[0]
    assert search.ask(3) != before[1]  # of which the new child is a part


def test_there_is_nothing_to_ask_before_a_valid_program_is_known() -> None:
    search = Search(settings=SETTINGS, direction=Direction.MAXIMISE, seed=0)
    assert search.best() is None
    with pytest.raises(ValueError, match="nothing to start from"):
        search.ask(0)
    search.admit(INITIAL, program(0), iteration=-1)
    search.tell(INITIAL, FAILED)
    assert search.best() is None
    with pytest.raises(ValueError, match="nothing to start from"):
        search.ask(0)


@pytest.mark.parametrize(
    ("direction", "worst_first"),
    [
        (Direction.MAXIMISE, ["c5", "c3", INITIAL, "c1", "c4", "c6"]),
        (Direction.MINIMISE, ["c4", "c6", "c1", INITIAL, "c3", "c5"]),
    ],
)
def test_the_history_is_the_best_others_worst_first(
    direction: Direction, worst_first: list[str]
) -> None:
    search = search_with(SCORES, direction=direction)
    best = search.best()
    assert best is not None
    assert best.id == {Direction.MAXIMISE: "c4", Direction.MINIMISE: "c5"}[direction]
    for proposal in asked(search):
        others = [name for name in worst_first if name != proposal.parent.id]
        assert [each.id for each in proposal.history] == others[-2:]


@pytest.mark.parametrize(("shown", "expected"), [(0, 0), (3, 3), (5, 5), (100, 5)])
def test_the_history_is_as_long_as_the_settings_say(shown: int, expected: int) -> None:
    search = search_with(SCORES, settings=replace(SETTINGS, history=shown))
    assert {len(each.history) for each in asked(search)} == {expected}


def test_operators_are_chosen_by_their_weights() -> None:
    counts = Counter(each.operator for each in asked(search_with(SCORES), range(2, 1502)))
    assert set(counts) == {"infill", "rewrite"}
    assert 900 < counts["rewrite"] < 1100  # 2 of 3; five standard deviations are 91
    alone = replace(SETTINGS, operators={"diff": 1e-300, "infill": 0.0})
    assert {each.operator for each in asked(search_with(SCORES, settings=alone))} == {"diff"}


def test_children_that_are_worth_no_evaluation_are_refused_with_the_reason() -> None:
    search = search_with(SCORES)
    parent = Candidate(id="c1", program=program(1), score=0.6)

    def refusal(text: str | None) -> Refusal | None:
        return search.refusal(text, parent=parent)

    assert refusal(None) is Refusal.UNPARSED
    assert refusal("def f(:") is Refusal.UNPARSED
    assert refusal("x = '\udc80'\0") is Refusal.UNPARSED
    assert refusal(program(1)) is Refusal.UNCHANGED
    assert refusal("def f(x):  # the same\n  'Doc.'\n  return (x * 1)") is Refusal.UNCHANGED
    assert refusal(program(0)) is Refusal.DUPLICATE  # the initial program's
    assert refusal(program(2)) is Refusal.DUPLICATE  # of one that failed
    assert refusal("def f(x):\n    return x * y\n") is Refusal.UNDEFINED
    assert refusal("import numpy as np\ndef f(x):\n    return np.no(x)\n") is Refusal.UNDEFINED
    assert refusal(program(99)) is None

    search.admit("new", program(99), iteration=5)
    assert refusal(program(99)) is Refusal.DUPLICATE  # before its verdict is in


# Failed attempts.


def failed(message: str) -> Evaluation:
    return Evaluation(score=None, failure=Failure.TIMEOUT, message=message)


def search_with_failures(order: list[int], *, failures: int, seed: int = 7) -> Search:
    """Return a search with failed and valid children of two parents, told in ``order``."""
    settings = replace(SETTINGS, failures=failures)
    search = Search(settings=settings, direction=Direction.MAXIMISE, seed=seed)
    search.admit(INITIAL, program(0), iteration=-1)
    search.tell(INITIAL, valid(0.5))
    search.admit("0.0", program(1), iteration=0, parent=INITIAL)
    search.tell("0.0", valid(0.6))
    children = [
        ("1.0", INITIAL, failed("a")),
        ("1.1", "0.0", failed("b")),
        ("2.0", INITIAL, valid(0.1)),
        ("2.1", INITIAL, failed("c")),
        ("3.0", INITIAL, failed("d")),
        ("3.1", "0.0", failed("e")),
    ]
    for number, (name, parent, _) in enumerate(children, start=2):
        search.admit(name, program(number), iteration=int(name[0]), parent=parent)
    for place in order:
        search.tell(children[place][0], children[place][2])
    return search


def failures_shown(order: list[int], parent: str, iteration: int, failures: int) -> str:
    """Return the messages of the failures that a proposal with ``parent`` shows."""
    for seed in range(200):
        search = search_with_failures(order, failures=failures, seed=seed)
        proposal = search.ask(iteration)
        if proposal.parent.id == parent:
            return "".join(each.evaluation.message for each in proposal.failures)
    raise AssertionError(f"{parent} was never chosen")


@pytest.mark.parametrize(
    ("parent", "iteration", "failures", "shown"),
    [
        (INITIAL, 1, 2, ""),
        (INITIAL, 2, 2, "a"),
        (INITIAL, 3, 2, "ac"),
        (INITIAL, 4, 2, "cd"),
        (INITIAL, 4, 9, "acd"),
        (INITIAL, 4, 0, ""),
        ("0.0", 4, 2, "be"),
        ("0.0", 4, 1, "e"),
        ("2.0", 4, 2, ""),
    ],
)
def test_a_proposal_has_the_last_failed_attempts_at_its_parent(
    parent: str, iteration: int, failures: int, shown: str
) -> None:
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 4, 1, 2, 0]):
        assert failures_shown(order, parent, iteration, failures) == shown


def test_a_program_that_was_screened_out_is_no_failed_attempt() -> None:
    search = search_with_failures([0, 1, 2, 3], failures=9)
    screened = Evaluation(score=None, failure=Failure.SCREENED, message="s")
    for name in ("3.0", "3.1"):
        search.tell(name, screened)
    shown = {
        proposal.parent.id: [each.evaluation.message for each in proposal.failures]
        for proposal in asked(search, range(4, 60))
    }
    assert shown == {INITIAL: ["a", "c"], "0.0": ["b"], "2.0": []}


def test_an_attempt_has_its_program_and_its_verdict_the_first_one_told() -> None:
    search = search_with_failures([0, 1, 2, 3, 4, 5], failures=1)
    search.tell("3.0", failed("another"))
    search.tell("2.0", failed("another"))
    search.tell("3.1", valid(100.0))
    attempts = [each.failures for each in asked(search, range(4, 60))]
    shown = [
        (Attempt(program=program(6), evaluation=failed("d")),),
        (Attempt(program=program(7), evaluation=failed("e")),),
    ]
    assert all(each in [(), *shown] for each in attempts)
    assert all(each in attempts for each in shown)
