"""The search's contract: ask, tell and finish, and the same again after a resume.

Islands and predictions have a file of their own: ``test_search_islands.py``.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from births import born

from engine.core import (
    INITIAL,
    Attempt,
    Call,
    Candidate,
    Child,
    Direction,
    Evaluation,
    Failure,
    Pending,
    Proposal,
    Refusal,
)
from engine.search.choice import Choice
from engine.search.inspirations import INSPIRATIONS
from engine.search.parents.hybrid import HybridSettings
from engine.search.search import Search
from engine.search.widths import WIDTHS, IterationOutcome, WidthSettings
from engine.settings import (
    IslandSettings,
    PromptSettings,
    SearchSettings,
)
from engine.syntax import read

SETTINGS = SearchSettings(
    k=4,
    temperature_min=0.5,
    temperature_max=1.0,
    novelty=None,
    archive="none",
    failures=2,
    parent=HybridSettings(policy="hybrid", p_elite=0.4, p_uniform=0.3, gamma=2.0, epsilon=0.01),
    operators={"infill": 1.0, "rewrite": 2.0, "diff": 0.0},
    mix={"policy": "fixed"},
)
FIXED = WIDTHS.read({"policy": "fixed"})
ALONE = IslandSettings(
    count=1,
    migrate_every=1,
    migrants=5,
    topology={"policy": "ring"},
)
CLASSIC = PromptSettings(
    layout="classic", history_tokens=2, growth_tokens=2, align=False, pending=True
)
STABLE = replace(CLASSIC, layout="stable")
TRANSCRIPT = replace(CLASSIC, layout="transcript")


def valid(score: float) -> Evaluation:
    return Evaluation(score=score, failure=None, metrics={"score": score})


FAILED = Evaluation(score=None, failure=Failure.ERROR, message="no")


def program(number: int) -> str:
    return f"def f(x):\n    return x * {number}\n"


def child(number: int, *, every: int = 3) -> tuple[Child, Call]:
    """Return the ``number``-th program; the parent of each is the first."""
    return born(
        id=f"c{number}",
        program=read(program(number)),
        iteration=(number - 1) // every,
        index=(number - 1) % every,
        parent=INITIAL,
        operator="infill",
    )


def new_search(
    *,
    settings: SearchSettings = SETTINGS,
    width: WidthSettings = FIXED,
    prompts: PromptSettings = CLASSIC,
    direction: Direction = Direction.MAXIMISE,
    seed: int = 7,
) -> Search:
    """Return a search without a program, to which each program has one token."""
    return Search(
        settings=settings,
        width=width,
        islands=ALONE,
        prompts=prompts,
        direction=direction,
        seed=seed,
        size=lambda _: 1,
    )


def search_with(
    scores: list[float | None],
    *,
    settings: SearchSettings = SETTINGS,
    prompts: PromptSettings = CLASSIC,
    direction: Direction = Direction.MAXIMISE,
    seed: int = 7,
    order: list[int] | None = None,
    every: int = 3,
) -> Search:
    """Return a search that was told ``scores``; ``every`` children make an iteration."""
    search = new_search(settings=settings, prompts=prompts, direction=direction, seed=seed)
    search.begin_with(INITIAL, read(program(0)), score=scores[0])
    numbers = [number for number in order or range(len(scores)) if number]
    for number in numbers:
        search.admit(*child(number, every=every))
    for number in numbers:
        score = scores[number]
        search.tell(f"c{number}", FAILED if score is None else valid(score))
    for iteration in range((len(scores) - 1) // every):
        search.finish(outcome(iteration))
    return search


def outcome(iteration: int, improved: int = 0) -> IterationOutcome:
    return IterationOutcome(
        island=0,
        iteration=iteration,
        parent="initial",
        children=5,
        improved=improved,
        model_seconds=1.0,
        computed_tokens=100,
        repeated_tokens=50,
        decode_steps=10,
        generated_tokens=40,
        evaluation_seconds=0.1,
    )


SCORES: list[float | None] = [0.5, 0.6, None, 0.4, 0.7, 0.1, 0.7]


def asked(search: Search, iterations: range = range(2, 40)) -> list[Proposal]:
    return [search.ask(iteration, island=0) for iteration in iterations]


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
    search.admit(*born(id="c4", program=read(program(1000)), iteration=0, parent="c1"))
    assert asked(search) == asked(search_with(SCORES))


def test_a_verdict_on_a_program_that_was_never_admitted_is_an_error() -> None:
    with pytest.raises(KeyError, match="never admitted"):
        search_with(SCORES).tell("c99", valid(1.0))


def test_what_is_pending_changes_nothing_else_of_what_is_asked() -> None:
    before = asked(search_with(SCORES))
    search = search_with(SCORES)
    names = ["2.1", "2.0"]
    for name in names:
        number = int(name[-1])
        search.admit(
            *born(
                id=name,
                program=read(program(50 + number)),
                iteration=2,
                index=number,
                parent=INITIAL,
            )
        )
    waiting = (Pending(id="2.0", program=program(50)), Pending(id="2.1", program=program(51)))
    assert asked(search) == [replace(each, pending=waiting) for each in before]
    search.tell("2.0", valid(99.0))
    assert {each.pending for each in asked(search)} == {waiting[1:]}
    assert asked(search) != [replace(each, pending=waiting[1:]) for each in before]


def test_a_run_that_shows_no_others_shows_no_pending_ones() -> None:
    search = search_with(SCORES, prompts=replace(STABLE, history_tokens=0))
    search.admit(*born(id="2.0", program=read(program(50)), iteration=2, parent=INITIAL))
    assert {each.pending for each in asked(search)} == {()}


def test_a_run_may_leave_out_what_is_pending() -> None:
    search = search_with(SCORES, prompts=replace(STABLE, pending=False))
    search.admit(*born(id="2.0", program=read(program(50)), iteration=2, parent=INITIAL))
    assert {each.pending for each in asked(search)} == {()}


def test_operator_and_seed_do_not_depend_on_the_candidates() -> None:
    one, other = asked(search_with(SCORES)), asked(search_with(SCORES[:3]))
    assert [(each.operator, each.seed) for each in one] == [
        (each.operator, each.seed) for each in other
    ]
    assert [each.parent for each in one] != [each.parent for each in other]


def test_a_recorded_call_is_asked_again_with_its_parent_and_width() -> None:
    search = search_with(SCORES)
    for proposal in asked(search):
        choice = Choice(parent=proposal.parent.id, rule="odd", operator=proposal.operator, k=9)
        again = search.recall(proposal.iteration, island=0, choice=choice)
        assert again == replace(proposal, k=9, rule="odd")
        given = search.ask(proposal.iteration, island=0, parent_id=choice.parent)
        assert given == replace(proposal, rule="given")
    with pytest.raises(ValueError, match="no valid candidate 'c2'"):
        search.ask(5, island=0, parent_id="c2")


def test_there_is_nothing_to_ask_before_a_valid_program_is_known() -> None:
    search = new_search()
    with pytest.raises(ValueError, match="nothing to start from"):
        search.ask(0, island=0)
    search.begin_with(INITIAL, read(program(0)), score=None)
    with pytest.raises(ValueError, match="nothing to start from"):
        search.ask(0, island=0)


@pytest.mark.parametrize(
    ("direction", "worst_first"),
    [
        (Direction.MAXIMISE, ["c5", "c3", INITIAL, "c1", "c6", "c4"]),
        (Direction.MINIMISE, ["c6", "c4", "c1", INITIAL, "c3", "c5"]),
    ],
)
def test_the_history_is_the_best_others_worst_first(
    direction: Direction, worst_first: list[str]
) -> None:
    search = search_with(SCORES, direction=direction)
    for proposal in asked(search):
        others = [name for name in worst_first if name != proposal.parent.id]
        assert [each.id for each in proposal.history] == others[-2:]


@pytest.mark.parametrize(("shown", "expected"), [(0, 0), (3, 3), (5, 5), (100, 5)])
def test_the_history_is_as_long_as_the_settings_say(shown: int, expected: int) -> None:
    search = search_with(SCORES, prompts=replace(CLASSIC, history_tokens=shown))
    assert {len(each.history) for each in asked(search)} == {expected}


@pytest.mark.parametrize(("layout", "expected"), [("stable", 1), ("classic", -1)])
def test_inspirations_are_laid_out_so_that_the_least_important_is_left_out_first(
    layout: str, expected: int
) -> None:
    """The layout ``stable`` leaves out the end of a history, ``classic`` its start."""
    best = INSPIRATIONS.read({"policy": "archive", "best": 3, "others": 0})
    search = search_with(
        SCORES,
        settings=replace(SETTINGS, inspirations=best),
        prompts=replace(CLASSIC, layout=layout, history_tokens=9),
    )
    for proposal in asked(search):
        others = [name for name in ("c4", "c6", "c1", INITIAL) if name != proposal.parent.id]
        assert [each.id for each in proposal.history][::expected] == others[:3]


# The window and the lineage.


LONG: list[float | None] = [0.5, 0.6, None, 0.4, 0.7, 0.1, 0.7, 0.2, 0.8, 0.9, 1.0, 0.3, None]


def as_it_grows(scores: list[float | None], prompts: PromptSettings) -> list[Proposal]:
    """Return what is asked for each iteration, once those before it are finished."""
    return [
        search_with(scores[: 1 + 3 * number], prompts=prompts).ask(number, island=0)
        for number in range(1 + (len(scores) - 1) // 3)
    ]


def test_a_stable_history_has_the_best_of_each_iteration_in_their_order() -> None:
    proposals = as_it_grows(LONG, replace(STABLE, history_tokens=9))
    assert [[each.id for each in proposal.history] for proposal in proposals] == [
        [INITIAL],
        [INITIAL, "c1"],
        [INITIAL, "c1", "c4"],
        [INITIAL, "c1", "c4", "c9"],
        [INITIAL, "c1", "c4", "c9", "c10"],
    ]
    assert {each.compactions for each in proposals} == {0}


def test_a_stable_history_is_compacted_and_says_so() -> None:
    proposals = as_it_grows(LONG, replace(STABLE, history_tokens=2, growth_tokens=1))
    assert [len(each.history) for each in proposals] == [1, 2, 3, 2, 3]
    assert [each.compactions for each in proposals] == [0, 0, 0, 1, 1]
    assert "c9" in {each.id for each in proposals[3].history}


def test_a_stable_history_takes_an_iteration_in_when_it_is_finished() -> None:
    search = search_with(SCORES, prompts=replace(STABLE, history_tokens=9))
    before = search.ask(9, island=0)
    search.admit(*born(id="2.0", program=read(program(50)), iteration=2, parent=INITIAL))
    search.tell("2.0", valid(99.0))
    assert search.ask(9, island=0).history == before.history
    parents = {each.parent.id: each.parent for each in asked(search)}
    best = parents["2.0"]  # it may be a parent already
    search.finish(outcome(2))
    assert search.ask(9, island=0).history == (*before.history, best)


def test_each_layout_asks_for_what_it_shows_of_the_same_parents() -> None:
    proposals = {
        prompts.layout: asked(search_with(LONG, prompts=prompts), range(4, 40))
        for prompts in (CLASSIC, STABLE, TRANSCRIPT)
    }
    for of_layout in zip(*proposals.values(), strict=True):
        assert len({(each.parent.id, each.operator, each.seed) for each in of_layout}) == 1
    assert all(each.history and not each.lineage for each in proposals["classic"])
    assert all(each.history and not each.lineage for each in proposals["stable"])
    for each in proposals["transcript"]:
        assert each.history == () and each.compactions == 0
        assert [turn.candidate.id for turn in each.lineage] == (
            [] if each.parent.id == INITIAL else [INITIAL]
        )


def test_the_history_of_a_layout_is_bounded_by_its_tokens() -> None:
    many: list[float | None] = [number % 17 / 17 for number in range(200)]
    for kept, growth in ((0, 5), (1, 0), (5, 3), (1000, 0)):
        sizes = {"history_tokens": kept, "growth_tokens": growth}
        classic = search_with(many, prompts=replace(CLASSIC, **sizes))
        assert {len(each.history) for each in asked(classic, range(70, 80))} == {min(kept, 199)}
        for count in (1, 40, 100, 200):
            stable = search_with(many[:count], prompts=replace(STABLE, **sizes))
            shown = stable.ask(70, island=0).history
            assert len(shown) <= (kept + growth if kept else 0)


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
        return search.refusal(None if text is None else read(text), parent=parent.id)

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

    search.admit(*born(id="new", program=read(program(99)), iteration=5, parent="c1"))
    assert refusal(program(99)) is Refusal.DUPLICATE  # before its verdict is in


# Failed attempts.


def failed(message: str) -> Evaluation:
    return Evaluation(score=None, failure=Failure.TIMEOUT, message=message)


def search_with_failures(order: list[int], *, failures: int, seed: int = 7) -> Search:
    """Return a search with failed and valid children of two parents, told in ``order``."""
    settings = replace(SETTINGS, failures=failures)
    search = new_search(settings=settings, seed=seed)
    search.begin_with(INITIAL, read(program(0)), score=0.5)
    children = [
        ("1.0", INITIAL, failed("a")),
        ("1.1", "0.0", failed("b")),
        ("2.0", INITIAL, valid(0.1)),
        ("2.1", INITIAL, failed("c")),
        ("3.0", INITIAL, failed("d")),
        ("3.1", "0.0", failed("e")),
    ]
    for place in dict.fromkeys((*order, *range(-1, 6))):  # the told ones first, then the others
        name, parent, _ = children[place] if place >= 0 else ("0.0", INITIAL, None)
        iteration, index = map(int, name.split("."))
        text = program(place + 2)
        search.admit(
            *born(id=name, program=read(text), iteration=iteration, index=index, parent=parent)
        )
    search.tell("0.0", valid(0.6))
    for place in order:
        search.tell(children[place][0], children[place][2])
    return search


def failures_shown(order: list[int], parent: str, failures: int) -> str:
    """Return the messages of the failures that a proposal with ``parent`` shows."""
    proposal = search_with_failures(order, failures=failures).ask(9, island=0, parent_id=parent)
    return "".join(each.evaluation.message for each in proposal.failures)


@pytest.mark.parametrize(
    ("parent", "failures", "shown"),
    [
        (INITIAL, 2, "cd"),
        (INITIAL, 9, "acd"),
        (INITIAL, 0, ""),
        ("0.0", 2, "be"),
        ("0.0", 1, "e"),
        ("2.0", 2, ""),
    ],
)
def test_a_proposal_has_the_last_failed_attempts_at_its_parent(
    parent: str, failures: int, shown: str
) -> None:
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 4, 1, 2, 0]):
        assert failures_shown(order, parent, failures) == shown
    assert failures_shown([0, 2], INITIAL, 9) == "a"  # what was told so far


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
        (Attempt(id="3.0", program=program(6), evaluation=failed("d")),),
        (Attempt(id="3.1", program=program(7), evaluation=failed("e")),),
    ]
    assert all(each in [(), *shown] for each in attempts)
    assert all(each in attempts for each in shown)


@pytest.mark.parametrize(("kind", "first"), [("fixed", {4}), ("turboevolve", {5})])
def test_the_width_policy_says_how_many_children(kind: str, first: set[int]) -> None:
    search = new_search(width=WIDTHS.read({"policy": kind}))
    search.begin_with(INITIAL, read(program(0)), score=0.5)
    assert {search.ask(iteration, island=0).k for iteration in range(5)} == first
    for iteration in range(6):
        search.finish(outcome(iteration))
    assert search.ask(6, island=0).k == (4 if kind == "fixed" else 7)


def test_the_cost_aware_width_stays_between_its_bounds() -> None:
    search = new_search(width=WIDTHS.read({"policy": "cost_aware", "k_min": 2, "k_max": 6}))
    search.begin_with(INITIAL, read(program(0)), score=0.5)
    for iteration in range(40):
        assert 2 <= search.ask(iteration, island=0).k <= 6
        search.finish(outcome(iteration, improved=iteration % 2))
