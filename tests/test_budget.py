"""A run's account by hand, and runs that each limit ends: at once, and with nothing lost."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from command import read_summary, run
from fault_lists import Fault, Kind
from lives import Life, live
from schedules import Schedule, drawn, small_problem

from engine import config
from engine.budget import Account, Limit, cost, ended_by
from engine.core import INITIAL, Direction, Evaluation, Failure, Problem, Refusal
from engine.settings import BudgetSettings, PriceSettings, RunSettings
from engine.store import (
    Call,
    Child,
    Event,
    GivenUp,
    Recorded,
    RunHistory,
    Session,
    Verdict,
)
from engine.syntax import read

FREE = PriceSettings(prompt=0.0, cached_prompt=0.0, generated=0.0)
PRICES = PriceSettings(prompt=2.0, cached_prompt=0.5, generated=10.0)
ENDLESS = BudgetSettings(
    candidates=10**9,  # in effect
    seconds=None,
    tokens=None,
    money=None,
    target=None,
    patience=None,
    prices=FREE,
)


def verdict(name: str, score: float | None) -> Verdict:
    failure = None if score is not None else Failure.ERROR
    program = "x = 0\n" if name == INITIAL else None
    return Verdict(
        candidate=name, evaluation=Evaluation(score=score, failure=failure), program=program
    )


def child(name: str, refusal: Refusal | None = None) -> Child:
    """Return a child of 7 tokens, whose prompt has 100, of which 80 were cached."""
    iteration, index = map(int, name.split("."))
    return Child(
        id=name,
        iteration=iteration,
        index=index,
        parent=INITIAL,
        operator="infill",
        completion="",
        completion_ids=tuple(range(7)),
        finish_reason="stop",
        program=read(f"x = {name}\n"),
        refusal=refusal,
        prompt_tokens=100,
        cached_prompt_tokens=80,
        llm_seconds=0.5,
    )


def guess(attempt: int) -> GivenUp:
    return GivenUp(
        iteration=1,
        attempt=attempt,
        island=0,
        parent=INITIAL,
        generated_tokens=50,
        prompt_tokens=200,
        cached_prompt_tokens=100,
        llm_seconds=1.0,
    )


FIRST: list[Event] = [Session(number=0, engine="0", fingerprint="f"), verdict(INITIAL, 0.5)]


def recorded(events: list[Event]) -> list[Recorded]:
    """Return the events, one a second."""
    return [Recorded(session=0, elapsed=float(i), event=each) for i, each in enumerate(events)]


def account(
    budget: BudgetSettings, events: list[Event], direction: Direction = Direction.MAXIMISE
) -> Account:
    history = RunHistory(direction=direction)
    for each in recorded([*FIRST, *events]):
        history.fold(each)
    return Account(budget, history)


def test_money_by_hand() -> None:
    # A child: 20 computed tokens at 2, 80 cached at 0.5 and 7 generated at 10 a million: 150e-6.
    # A guess: 100 at 2, 100 at 0.5 and 50 at 10: 750e-6.
    assert cost(PRICES, prompt_tokens=100, cached_prompt_tokens=80, generated_tokens=7) == 150e-6
    events = [child("0.0"), child("0.1", Refusal.UNPARSED), child("0.2"), guess(0), guess(1)]
    paid = replace(ENDLESS, prices=PRICES)
    assert account(paid, events).money == pytest.approx(3 * 150e-6 + 2 * 750e-6, rel=1e-12)
    assert account(paid, []).money == 0.0
    assert account(ENDLESS, events).money == 0.0


def test_cached_tokens_have_a_price_of_their_own() -> None:
    for name, paid in (("prompt", 20.0), ("cached_prompt", 80.0), ("generated", 7.0)):
        prices = replace(FREE, **{name: 1e6})
        assert cost(prices, prompt_tokens=100, cached_prompt_tokens=80, generated_tokens=7) == paid


def test_what_was_used_by_hand() -> None:
    events = [child("0.0"), verdict("0.0", 0.25), child("0.1"), guess(0), verdict("0.1", None)]
    used = account(replace(ENDLESS, prices=PRICES), events).used
    assert used == {
        Limit.CANDIDATES: 2,
        Limit.TOKENS: 7 + 7 + 50,
        Limit.MONEY: pytest.approx(2 * 150e-6 + 750e-6),
        Limit.PATIENCE: 2,
        Limit.SECONDS: 6.0,
    }


def reached(budget: BudgetSettings, events: list[Event], **more: Direction) -> list[Limit | None]:
    """Return what was reached after each event."""
    return [account(budget, events[:end], **more).reached for end in range(len(events) + 1)]


def test_a_limit_of_candidates_counts_them_when_they_are_admitted() -> None:
    events: list[Event] = [child("0.0"), child("0.1", Refusal.UNPARSED), child("0.2")]
    budget = replace(ENDLESS, candidates=2)
    assert reached(budget, events) == [None, None, None, Limit.CANDIDATES]
    assert not account(budget, [*events, verdict("0.0", 1.0)]).is_closed
    assert account(budget, [*events, verdict("0.0", 1.0), verdict("0.2", None)]).is_closed
    assert account(replace(ENDLESS, candidates=0), []).is_closed


def test_a_limit_of_tokens_counts_those_of_given_up_guesses() -> None:
    events: list[Event] = [child("0.0", Refusal.UNPARSED), guess(0), child("0.1", Refusal.LONG)]
    assert reached(replace(ENDLESS, tokens=57), events) == [None, None, *[Limit.TOKENS] * 2]
    assert reached(replace(ENDLESS, tokens=58), events) == [None, None, None, Limit.TOKENS]
    assert account(replace(ENDLESS, tokens=0), []).is_closed


def test_a_limit_of_money_is_reached_with_the_child_that_costs_it() -> None:
    events: list[Event] = [child("0.0", Refusal.UNPARSED), child("0.1", Refusal.UNPARSED)]
    paid = replace(ENDLESS, prices=PRICES)
    assert reached(replace(paid, money=300e-6), events) == [None, None, Limit.MONEY]
    assert reached(replace(paid, money=301e-6), events) == [None, None, None]
    assert account(replace(paid, money=0.0), []).reached is Limit.MONEY


def test_a_limit_of_seconds_is_over_at_the_first_event_after_it_and_awaits_no_verdict() -> None:
    budget = replace(ENDLESS, seconds=3.0)
    events: list[Event] = [child("0.0"), child("0.1"), verdict("0.0", 1.0), verdict("0.1", 1.0)]
    # The initial program's verdict is at 1 s.
    assert reached(budget, events) == [None, None, *[Limit.SECONDS] * 3]
    assert [account(budget, events[:end]).is_closed for end in (1, 2, 3)] == [False, True, True]
    both = replace(budget, candidates=2)  # which is reached first, and waits while there is time
    assert account(both, events[:2]).is_closed
    assert not account(replace(both, seconds=3.5), events[:2]).is_closed


@pytest.mark.parametrize(
    ("direction", "target", "expected"),
    [
        (Direction.MAXIMISE, 0.75, [None, None, None, Limit.TARGET]),
        (Direction.MAXIMISE, 0.76, [None] * 4),
        (Direction.MAXIMISE, 0.5, [Limit.TARGET] * 4),  # as good as that is the initial program
        (Direction.MINIMISE, 0.25, [None, None, Limit.TARGET, Limit.TARGET]),
        (Direction.MINIMISE, -1.0, [None] * 4),
    ],
)
def test_a_target_is_reached_by_an_equal_score(
    direction: Direction, target: float, expected: list[Limit | None]
) -> None:
    events: list[Event] = [verdict("0.0", None), verdict("0.1", 0.25), verdict("0.2", 0.75)]
    assert reached(replace(ENDLESS, target=target), events, direction=direction) == expected


def test_patience_is_over_after_so_many_candidates_in_a_row_and_stays_so() -> None:
    scores = [0.5, 0.6, None, 0.6, 0.1, 0.7, 0.1]  # the first one is no better than the initial
    events: list[Event] = [verdict(f"0.{i}", score) for i, score in enumerate(scores)]
    # Waits of 1; 0; 1, 2, 3; 0; 1.
    none = [None] * 5
    assert reached(replace(ENDLESS, patience=3), events) == [*none, *[Limit.PATIENCE] * 3]
    assert reached(replace(ENDLESS, patience=4), events) == [None] * 8
    assert reached(replace(ENDLESS, patience=1), events) == [None, *[Limit.PATIENCE] * 7]


def test_a_run_is_ended_by_the_limit_that_it_reached_first() -> None:
    events = [*FIRST, child("0.0"), verdict("0.0", 0.75), child("0.1"), verdict("0.1", 0.9)]
    budget = replace(ENDLESS, target=0.9, candidates=2, tokens=7, patience=9, seconds=5.0)

    def ended(budget: BudgetSettings) -> Limit | None:
        return ended_by(budget, recorded(events), direction=Direction.MAXIMISE)

    assert ended(budget) is Limit.TOKENS
    assert ended(replace(budget, tokens=None)) is Limit.CANDIDATES
    assert ended(replace(budget, tokens=None, candidates=None)) is Limit.TARGET
    assert ended(replace(budget, tokens=None, candidates=None, target=None)) is Limit.SECONDS
    assert ended(replace(ENDLESS, patience=9)) is None


# Runs, with the real loop, search, decoder and log.

LIMITS = {
    Limit.CANDIDATES: {"candidates": 12},
    Limit.SECONDS: {"candidates": None, "seconds": 0.05},
    Limit.TOKENS: {"candidates": None, "tokens": 1500},
    Limit.MONEY: {"candidates": None, "money": 0.03, "prices": PRICES},
    Limit.TARGET: {"candidates": 100_000, "target": 0.9},
    Limit.PATIENCE: {"candidates": 100_000, "patience": 7},
}
ENDS = [
    (),
    (Fault(kind=Kind.RECORD, after=20), Fault(kind=Kind.STOP, after=12)),
    (
        Fault(kind=Kind.STEP, after=9),
        Fault(kind=Kind.RECORDED, after=20),
        Fault(kind=Kind.STOP, after=6),
    ),
]


@pytest.fixture(scope="module")
def defaults() -> RunSettings:
    return config.resolve([])


@pytest.fixture(scope="module")
def problem(defaults: RunSettings) -> Problem:
    return small_problem(defaults)


def scheduled(seed: int, defaults: RunSettings, limit: Limit, ends: tuple[Fault, ...]) -> Schedule:
    schedule = drawn(seed, defaults)
    budget = replace(defaults.budget, seconds=None)
    settings = replace(schedule.settings, budget=replace(budget, **LIMITS[limit]))
    return replace(schedule, settings=settings, faults=ends)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("ends", ENDS, ids=len)
def test_each_limit_ends_a_run_and_nothing_is_admitted_after_it(
    defaults: RunSettings, problem: Problem, limit: Limit, ends: tuple[Fault, ...], tmp_path: Path
) -> None:
    for seed in range(3):
        schedule = scheduled(seed, defaults, limit, ends)
        life = live(schedule, problem, tmp_path / str(seed))
        assert_ended(life, schedule.settings.budget, limit, problem.direction)


def assert_ended(life: Life, budget: BudgetSettings, limit: Limit, direction: Direction) -> None:
    history = RunHistory(direction=direction)
    account = Account(budget, history)
    after = 0
    for each in life.events:
        over = account.reached is not None
        after += over
        if over and isinstance(each.event, Child):
            assert each.event.refusal is not None
        history.fold(each)
    assert history == life.history
    ended = ended_by(budget, life.events, direction=direction)
    if limit is Limit.SECONDS and ended is None:  # the clock ran out after the last event
        return
    assert ended is limit
    assert account.is_closed
    calls = [each.event for each in life.events if isinstance(each.event, Call)]
    assert not any(history.missing(call) for call in calls)
    assert after < 100, "the run went on"
    if limit is Limit.CANDIDATES:
        assert history.admitted == history.evaluated == 12
    elif limit is not Limit.TARGET:
        assert account.used[limit] >= account.limits[limit]
    else:
        assert history.best is not None and history.best.score is not None
        assert history.best.score >= 0.9


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        (Limit.TOKENS, 3000),
        pytest.param(Limit.TARGET, 0.4, marks=pytest.mark.slow),
        pytest.param(Limit.MONEY, 0.125, marks=pytest.mark.slow),
    ],
)
def test_a_run_says_which_limit_ended_it_and_stays_ended(
    limit: Limit, value: float, tmp_path: Path
) -> None:
    limits = {"seconds": 100, "candidates": "null", "prices.generated": 25, limit: value}
    started = run(
        *(f"budget.{key}={each}" for key, each in limits.items()),
        *("model=mutation", f"runs={tmp_path}", "name=run"),
        scratch=tmp_path / "scratch",
    )
    assert started.returncode == 0
    assert f"\nEnded by budget.{limit}={value}\n" in started.stdout
    summary = read_summary(tmp_path / "run")
    assert summary["ended_by"] == limit
    if limit is Limit.TARGET:  # the initial program is that good
        assert summary["children"] == 0
        assert summary["best_score"] >= value
    else:
        tokens = summary["generated_tokens"] + summary["speculation"]["wasted_tokens"]
        assert summary["money"] == pytest.approx(tokens * 25e-6)
        assert (tokens if limit is Limit.TOKENS else summary["money"]) >= value
    resumed = run(f"resume={tmp_path / 'run'}", scratch=tmp_path / "scratch")
    assert resumed.returncode == 0
    assert started.stdout.endswith(resumed.stdout) and resumed.stdout
    assert read_summary(tmp_path / "run") == summary


SLOW = """
import time
import numpy as np

def double(values: np.ndarray, offset: float = 0.0) -> dict:
    time.sleep(4)
    return {"doubled": 2 * values + offset, "count": len(values)}
"""


def test_a_run_is_over_at_its_seconds_however_slow_the_candidates_in_the_queue_are(
    tmp_path: Path,
) -> None:
    slow, double = tmp_path / "slow", Path(__file__).parent / "evaluation" / "problems" / "double"
    shutil.copytree(double, slow)
    (slow / "initial.py").write_text(SLOW)
    limits = (slow / "problem.yaml").read_text().replace("seconds: 5", "seconds: 30")
    (slow / "problem.yaml").write_text(limits)
    started = run(
        *(f"problem.path={slow}", "model=mutation", "budget.seconds=25", "search.k=4"),
        *("evaluation.workers=1", f"runs={tmp_path}", "name=run"),
        scratch=tmp_path / "scratch",
    )
    assert started.returncode == 0, started.stderr
    summary = read_summary(tmp_path / "run")
    assert summary["ended_by"] == Limit.SECONDS
    # Each of a call's four candidates takes 8 s, 4 for each of the problem's cases.
    assert summary["unevaluated"] > 0
    assert f"end came before: {summary['unevaluated']}\n" in started.stdout
