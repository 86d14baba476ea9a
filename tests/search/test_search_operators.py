"""Operators that need more than a parent, and the bandit over operators, as the search asks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from births import born, made_call

from engine.core import INITIAL, Direction, Evaluation, Failure, Proposal
from engine.search.choice import Choice
from engine.search.parents import ParentSettings
from engine.search.parents.hybrid import HybridSettings
from engine.search.population import RECENT
from engine.search.search import Search
from engine.search.widths import WIDTHS, IterationOutcome
from engine.settings import (
    IslandSettings,
    PromptSettings,
    SearchSettings,
)
from engine.syntax import read

GREEDY = HybridSettings(policy="hybrid", p_elite=1.0, p_uniform=0.0, gamma=1.0, epsilon=0.01)
UNIFORM = replace(GREEDY, p_elite=0.0, p_uniform=1.0)
LATER = range(100, 180)


def search_settings(operators: dict[str, float], policy: str = "fixed") -> SearchSettings:
    return SearchSettings(
        k=2,
        temperature_min=0.5,
        temperature_max=1.0,
        novelty=None,
        archive="none",
        failures=3,
        parent=UNIFORM,
        operators=operators,
        mix={"policy": policy},
    )


class Told:
    """A search and what is told to it; each iteration has the initial program as its parent."""

    def __init__(self, settings: SearchSettings, *, layout: str = "transcript") -> None:
        self.search = Search(
            settings=settings,
            width=WIDTHS.read({"policy": "fixed"}),
            islands=IslandSettings(
                count=2,
                migrate_every=0,
                migrants=1,
                topology={"policy": "ring"},
            ),
            prompts=PromptSettings(
                layout=layout, history_tokens=9, growth_tokens=9, align=False, pending=True
            ),
            direction=Direction.MAXIMISE,
            seed=3,
            size=lambda _: 1,
        )
        self.search.begin_with(INITIAL, read("x = 0\n"), score=0.5)

    def child(
        self,
        name: str,
        score: float | None,
        *,
        parent: str = INITIAL,
        operator: str = "rewrite",
        island: int = 0,
        partner: str | None = None,
        repairs: str | None = None,
        failure: Failure = Failure.ERROR,
    ) -> None:
        iteration, index = map(int, name.split("."))
        self.search.admit(
            *born(
                id=name,
                program=read(f"x = {iteration} + {index}\n"),
                iteration=iteration,
                index=index,
                island=island,
                parent=parent,
                operator=operator,
                answer=name,
                partner=partner,
                repairs=repairs,
            )
        )
        bad = Evaluation(score=None, failure=failure, message=f"no {name}")
        good = Evaluation(score=score, failure=None)
        self.search.tell(name, bad if score is None else good)

    def iterate(self, iteration: int, operator: str, *scores: float | None) -> None:
        self.search.begin(made_call(iteration, operator=operator))
        for index, score in enumerate(scores):
            self.child(f"{iteration}.{index}", score, operator=operator)
        self.search.finish(
            IterationOutcome(
                island=0,
                iteration=iteration,
                parent=INITIAL,
                children=len(scores),
                improved=0,
                model_seconds=1.0,
                computed_tokens=1,
                repeated_tokens=0,
                decode_steps=9,
                generated_tokens=9,
                evaluation_seconds=0.0,
            )
        )

    def asked(self, *, island: int = 0) -> list[Proposal]:
        return [self.search.ask(number, island=island) for number in LATER]


def crossing(parent: ParentSettings = UNIFORM) -> Told:
    settings = search_settings({"rewrite": 1.0, "crossover": 1.0})
    return Told(replace(settings, parent=parent))


def repairing(**weights: float) -> Told:
    return Told(search_settings(weights or {"rewrite": 1.0, "repair": 1.0}))


# Crossover.


def test_a_crossover_takes_two_candidates() -> None:
    told = crossing()
    assert {(each.operator, each.partner) for each in told.asked()} == {("rewrite", None)}
    told.child("0.0", 0.7)
    asked = told.asked()
    assert Counter(each.operator for each in asked).keys() == {"rewrite", "crossover"}
    for each in asked:
        assert (each.partner is None) == (each.operator == "rewrite")
        assert each.partner is None or {each.parent.id, each.partner.id} == {INITIAL, "0.0"}
    assert {each.operator for each in told.asked(island=1)} == {"rewrite"}


def test_the_partner_is_drawn_as_parents_are_by_other_numbers() -> None:
    told = crossing()
    for number in range(6):
        told.child(f"0.{number}", 0.1 * number)
    crossed = [each for each in told.asked() if each.partner is not None]
    pairs = {(each.parent.id, each.partner_id) for each in crossed}
    assert len(pairs) > 15 and all(parent != partner for parent, partner in pairs)
    greedy = crossing(GREEDY)
    for number in range(6):
        greedy.child(f"0.{number}", 0.1 * number + 0.45)
    pairs = {(each.parent.id, each.partner_id) for each in greedy.asked()}
    assert pairs == {("0.5", None), ("0.5", "0.4")}  # the best, and the best but that


def test_a_classic_prompt_shows_the_partner_once() -> None:
    told = Told(search_settings({"rewrite": 1.0, "crossover": 1.0}), layout="classic")
    told.child("0.0", 0.7)
    told.child("0.1", 0.6)
    for each in told.asked():
        shown = {each.parent.id, each.partner_id, *(other.id for other in each.history)}
        assert shown - {None} == {INITIAL, "0.0", "0.1"}
        assert len(each.history) == (2 if each.partner is None else 1)


def test_another_parent_has_another_partner_only_if_it_was_it() -> None:
    told = crossing()
    for number in range(6):
        told.child(f"0.{number}", 0.1 * number)
    for each in told.asked():
        other = told.search.ask(each.iteration, island=0, parent_id="0.3")
        assert (other.parent.id, other.operator) == ("0.3", each.operator)
        if each.partner_id not in (None, "0.3") and each.parent.id != other.partner_id:
            assert other.partner == each.partner


def test_a_crossover_that_cannot_be_drawn_leaves_the_other_draws_as_they_are() -> None:
    three = {"rewrite": 1.0, "diff": 1.0, "crossover": 1.0}
    alone, many = Told(search_settings(three)), Told(search_settings(three))
    many.child("0.0", 0.7)
    pairs = [*zip(alone.asked(), many.asked(), strict=True)]
    assert all(b.operator in (a.operator, "crossover") for a, b in pairs)
    assert all(a.seed == b.seed for a, b in pairs)
    assert {b.operator for _, b in pairs} == three.keys()


# Repair.


def repaired(told: Told, *, island: int = 0) -> set[str]:
    """Return which attempts are to be corrected, if the next calls are repairs."""
    return {each.repairs.id for each in told.asked(island=island) if each.repairs is not None}


def test_the_last_failed_attempt_is_repaired_once() -> None:
    told = repairing()
    assert {each.operator for each in told.asked()} == {"rewrite"}
    told.child("0.0", 0.7)
    told.child("1.1", None)
    told.child("1.0", None, parent="0.0")
    asked = [each for each in told.asked() if each.operator == "repair"]
    assert asked and repaired(told) == {"1.1"}
    for each in asked:
        assert (each.parent.id, each.repairs_id) == (INITIAL, "1.1")
        assert each.repairs is not None and each.repairs.evaluation.message == "no 1.1"
        assert each.repairs.program == "x = 1 + 1\n"
        assert each.failures == () and each.partner is None  # it is not shown twice
    told.search.begin(made_call(2, operator="repair", repairs="1.1"))
    assert repaired(told) == {"1.0"}
    assert {each.parent.id for each in told.asked() if each.repairs is not None} == {"0.0"}
    told.search.begin(made_call(3, operator="repair", repairs="1.0"))
    assert {each.operator for each in told.asked()} == {"rewrite"}


def test_some_failures_are_not_to_be_repaired() -> None:
    told = repairing()
    told.child("0.0", None, failure=Failure.SCREENED)
    told.child("0.1", None, island=1)
    assert repaired(told) == set() and repaired(told, island=1) == {"0.1"}
    told.child("1.0", None)
    told.search.begin(made_call(2, operator="repair", repairs="1.0"))
    told.child("2.0", None, operator="repair", repairs="1.0")
    assert repaired(told) == set()  # one retry
    told.child("3.0", None, failure=Failure.TIMEOUT)
    assert repaired(told) == {"3.0"}


def test_the_search_for_one_to_repair_does_not_go_back_for_ever() -> None:
    told = repairing()
    names = [f"{number}.0" for number in range(RECENT + 1)]
    for name in names:
        told.child(name, None)
    for number in range(RECENT):
        assert repaired(told) == {names[-1 - number]}
        told.search.begin(made_call(50 + number, operator="repair", repairs=names[-1 - number]))
    assert repaired(told) == set()


def test_a_repair_has_the_parent_of_its_attempt_whoever_is_named() -> None:
    told = repairing(rewrite=1e-9, repair=1.0)
    told.child("0.0", 0.9)
    told.child("1.0", None)
    told.child("1.1", None)
    expected = told.search.ask(5, island=0)
    assert (expected.parent.id, expected.repairs_id) == (INITIAL, "1.1")
    assert told.search.ask(5, island=0, parent_id="0.0") == expected
    # The call after that one repairs another, though nothing was told of the first.
    after = told.search.ask(6, island=0, begun=[expected])
    assert after.repairs_id == "1.0"
    assert told.search.ask(7, island=0, begun=[expected, after]).operator == "rewrite"


def test_the_other_attempts_at_the_parent_are_shown_beside_the_broken_one() -> None:
    told = repairing(rewrite=1e-9, repair=1.0)
    for index in range(5):
        told.child(f"0.{index}", None)
    proposal = told.search.ask(5, island=0)
    assert proposal.repairs_id == "0.4"
    assert [each.id for each in proposal.failures] == ["0.1", "0.2", "0.3"]
    told.search.begin(made_call(5, operator="repair", repairs="0.4"))
    told.child("5.0", 0.8, operator="repair", repairs="0.4")
    told.child("6.0", 0.9, operator="crossover", partner="5.0")
    choice = Choice(parent="5.0", rule="elite", operator="rewrite", k=1)
    (turn,) = told.search.recall(9, island=0, choice=choice).lineage
    assert (turn.operator, turn.repairs) == ("repair", proposal.repairs)
    assert turn.failures == proposal.failures
    (turn,) = told.search.recall(9, island=0, choice=replace(choice, parent="6.0")).lineage
    assert turn.partner is not None and turn.partner.id == "5.0"


# What was recorded.


def test_a_recorded_call_is_proposed_again_by_what_it_was_made_for() -> None:
    told = Told(search_settings({"rewrite": 1.0, "crossover": 1.0, "repair": 1.0}))
    told.child("0.0", 0.7)
    told.child("0.1", None)
    seen = set()
    for each in told.asked():
        choice = Choice(
            parent=each.parent.id,
            rule=each.rule,
            operator=each.operator,
            k=each.k,
            partner=each.partner_id,
            repairs=each.repairs_id,
        )
        assert told.search.recall(each.iteration, island=0, choice=choice) == each
        seen.add(each.operator)
    assert seen == {"rewrite", "crossover", "repair"}
    for bad in (
        Choice(parent="0.1", rule="elite", operator="rewrite", k=1),
        Choice(parent=INITIAL, rule="elite", operator="crossover", k=1, partner="0.1"),
        Choice(parent=INITIAL, rule="elite", operator="repair", k=1, repairs="0.0"),
    ):
        with pytest.raises(ValueError, match=r"'0\.[01]' was told"):
            told.search.recall(9, island=0, choice=bad)


# The bandit.


def test_the_bandit_learns_which_operator_improves_parents() -> None:
    """The initial program has 0.5: of `diff` half the children are better, of `rewrite` none."""
    told = Told(search_settings({"rewrite": 1.0, "diff": 1.0}, "kl_ucb"))
    told.iterate(0, "rewrite", 0.5, 0.4)
    assert {each.operator for each in told.asked()} == {"diff"}  # which was never used
    told.iterate(1, "diff", 0.6, None)
    told.iterate(2, "rewrite", None, 0.1)
    told.iterate(3, "diff", 0.3, 0.7)
    assert {each.operator for each in told.asked()} == {"diff"}  # 0.933 against 0.5
    assert {each.operator for each in told.asked(island=1)} == {"rewrite", "diff"}  # none known
    for number in range(4, 30):
        told.iterate(number, "diff", 0.4, 0.4)
    assert {each.operator for each in told.asked()} == {"rewrite"}


def test_a_bandit_that_is_told_again_asks_the_same() -> None:
    def lived(calls: list[tuple[str, float]]) -> Told:
        told = Told(search_settings({"rewrite": 1.0, "diff": 1.0, "crossover": 1.0}, "kl_ucb"))
        for number, (operator, score) in enumerate(calls):
            told.iterate(number, operator, score, None)
        return told

    calls: list[tuple[str, float]] = []
    for number in range(40):
        operator = lived(calls).search.ask(number, island=0).operator
        calls.append((operator, {"rewrite": 0.1, "diff": 0.2, "crossover": 0.9}[operator]))
    used = Counter(operator for operator, _ in calls)
    assert used["crossover"] > used["rewrite"] + used["diff"]
    assert lived(calls).asked() == lived(calls).asked()
