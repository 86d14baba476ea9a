"""CodeEvolve's parents: who is drawn by which rule, and the exploration rate step by step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from draws import candidates, counts, new_policy, outcome, p_value

from engine.core import FIRST_ITERATION, Candidate, Direction
from engine.search.parents.codeevolve import CodeEvolve, CodeEvolveSettings, Schedule

UP, DOWN = Direction.MAXIMISE, Direction.MINIMISE


def policy(*, direction: Direction = UP, **parameters: float) -> CodeEvolve:
    made = new_policy("codeevolve", direction=direction, **parameters)
    assert isinstance(made, CodeEvolve)
    return made


def schedule(direction: Direction = UP, **parameters: float) -> Schedule:
    return Schedule(
        CodeEvolveSettings(policy="codeevolve", **parameters),  # type: ignore[arg-type]
        direction=direction,
    )


@pytest.mark.parametrize(
    ("direction", "weights"),
    [(UP, [1 / 3, 1 / 2, 1]), (DOWN, [1, 1 / 2, 1 / 3])],
)
def test_exploiting_draws_by_one_over_the_rank(direction: Direction, weights: list[float]) -> None:
    made = policy(direction=direction, population=0, rate=0.0, least=0.0)
    assert p_value(counts(made, candidates(1.0, 5.0, 7.0)), weights) > 1e-4


def test_equal_scores_share_the_mean_of_their_ranks() -> None:
    """Ranks 1, 2.5, 2.5 of the scores 3, 1, 1."""
    made = policy(population=0, rate=0.0, least=0.0)
    assert p_value(counts(made, candidates(3.0, 1.0, 1.0)), [1, 0.4, 0.4]) > 1e-4


def test_exploring_draws_anyone_and_asks_for_more_than_the_elites() -> None:
    made = policy(population=0, rate=1.0, most=1.0)
    assert made.takes_any(u=1.0)
    assert p_value(counts(made, candidates(1.0, 5.0, 7.0)), [1, 1, 1]) > 1e-4
    half = policy(population=0, rate=0.5)
    assert [half.choose(candidates(1.0), u=u, key=1).rule for u in (0.0, 0.5, 0.51)] == [
        *("explore", "explore", "exploit"),
    ]
    assert [half.takes_any(u=u) for u in (0.5, 0.51)] == [True, False]


def test_the_first_population_is_of_what_the_island_began_with() -> None:
    """The initial program and two children, one of which failed, are three of four programs."""
    made = policy(population=4)
    initial = Candidate(id="initial", program="x", score=0.0, iteration=FIRST_ITERATION)
    child = replace(initial, id="0.0", score=9.0, iteration=0)
    fill = replace(initial, id="f0", score=5.0)
    made.begin_with(initial)
    made.tell(outcome(0, "initial", a=9.0, b=None))
    drawn = {made.choose([initial, fill, child], u=u / 9, key=u) for u in range(9)}
    assert {(each.candidate.id, each.rule) for each in drawn} == {("initial", "first")}
    made.tell(outcome(1, "initial", c=None))
    assert {made.choose([initial, child], u=u / 9, key=u).rule for u in range(9)} == {
        *("explore", "exploit"),
    }


def test_the_rate_by_hand() -> None:
    """From 0.3: 0.95 times as large with a new best, 1.05 after two steps without one."""
    own = schedule(rate=0.3, least=0.2, most=0.5, patience=2)
    rates = []
    for best in (1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0):
        own.step(best)
        rates.append(own.rate)
    expected = [0.285, 0.285, 0.29925, 0.29925, 0.2842875, 0.2842875, 0.298501875]
    assert rates == pytest.approx(expected, rel=1e-12)


def test_the_rate_stays_inside_its_bounds() -> None:
    own = schedule(rate=0.2, patience=1)
    own.step(1.0)
    assert own.rate == 0.2  # 0.19 is below
    for _ in range(100):
        own.step(1.0)
    assert own.rate == 0.5


def test_lower_is_better_where_the_problem_minimises_and_no_score_is_no_progress() -> None:
    own = schedule(DOWN, rate=0.4, patience=9)
    own.step(None)
    assert own.rate == 0.4
    for best, rate in ((3.0, 0.38), (4.0, 0.38), (2.0, 0.361)):
        own.step(best)
        assert own.rate == pytest.approx(rate)


def test_the_rate_stands_still_until_the_population_is_there() -> None:
    made = policy(population=3, rate=0.4)
    made.receive(candidates(0.5)[0])
    made.tell(outcome(0, "c0", a=1.0))
    assert made.schedule.rate == 0.4
    made.tell(outcome(1, "c0", b=0.0))
    assert made.schedule.rate == pytest.approx(0.38)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"least": 0.6, "most": 0.5}, "at least search.parent.least"),
        ({"rate": 0.1}, "from search.parent.least"),
        ({"patience": 0}, "patience"),
        ({"increase": 0.5}, "increase"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        policy(**given)
