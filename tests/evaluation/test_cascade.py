"""The cascade: who goes on, who is audited, when a stage is switched off, and a resumed run.

The pool here is a small deterministic one: a program is two numbers, its score at the cheap stages
and its full score, and a word if it fails.
"""

from __future__ import annotations

import logging
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from engine import config
from engine.beginning import told_cascade
from engine.core import (
    ArraySpec,
    Case,
    Direction,
    Evaluation,
    Event,
    Failure,
    Limits,
    Migrant,
    Problem,
    Session,
    Stage,
    Verdict,
)
from engine.evaluation import Cascade
from engine.evaluation.cascade import AUDITED
from engine.evaluation.screen import FEWEST_AUDITS, rank_correlation, upward_error
from engine.settings import FEWEST_SCORES, CascadeSettings
from engine.store import Recorded, RunHistory
from engine.syntax import read

SETTINGS = CascadeSettings(keep=0.5, audit=0.1, correlation_min=0.3, window=64)
CASES = (Case(name="one", args=(1.0,), outputs={"x": ArraySpec(shape=())}),)


def problem(*screens: str, direction: Direction = Direction.MAXIMISE) -> Problem:
    def score(outputs: object) -> dict[str, float]:
        raise AssertionError("the pool here scores by itself")

    stages = [Stage(name=name, cases=CASES, score=score) for name in (*screens, "full")]
    return Problem(
        name="numbers",
        folder=Path("numbers"),
        direction=direction,
        statement="",
        initial_program="",
        entry_point="f",
        stages=tuple(stages),
        isolate_cases=False,
        limits=Limits(seconds=1.0, memory_bytes=1 << 20),
        modules=(),
        known_scores=(),
        fingerprint="",
    )


class NumberPool:
    """Scores ``PROXY FULL [STAGE:FAILURE]``; hands verdicts back one at a time, or shuffled."""

    def __init__(self, problem: Problem, *, shuffled: random.Random | None = None) -> None:
        self._last = len(problem.stages) - 1
        self._waiting: deque[tuple[str, Evaluation]] = deque()
        self._shuffled = shuffled
        self.runs: list[tuple[str, int]] = []
        self.orders: dict[str, set[int]] = {}

    def submit(self, *, candidate_id: str, program: str, stage: int, order: int) -> None:
        self.runs.append((candidate_id, stage))
        self.orders.setdefault(candidate_id, set()).add(order)
        self._waiting.append((candidate_id, self._judge(program, stage)))

    def completed(self, *, timeout: float | None) -> list[tuple[str, Evaluation]]:
        if self._shuffled is not None:
            self._shuffled.shuffle(self._waiting)
        return [self._waiting.popleft()] if self._waiting else []

    def _judge(self, program: str, stage: int) -> Evaluation:
        proxy, full, *fails = program.split()
        used = {"seconds": 0.25 * (stage + 1), "peak_bytes": 1000 - stage}
        for each in fails:
            where, kind = each.split(":")
            if int(where) == stage:
                return Evaluation(score=None, failure=Failure(kind), message="it failed", **used)
        score = float(full if stage == self._last else proxy)
        return Evaluation(
            score=score,
            failure=None,
            metrics={"score": score, "other": float(stage)},
            artifacts={"stdout": f"stage {stage}"},
            **used,
        )


class Setting:
    """A cascade over a `NumberPool`, and everything that came out of it."""

    def __init__(
        self,
        *screens: str,
        settings: CascadeSettings = SETTINGS,
        direction: Direction = Direction.MAXIMISE,
        seed: int = 1,
        shuffled: random.Random | None = None,
    ) -> None:
        self.problem = problem(*screens, direction=direction)
        self.pool = NumberPool(self.problem, shuffled=shuffled)
        self.cascade = Cascade(pool=self.pool, problem=self.problem, settings=settings, seed=seed)
        self.verdicts: dict[str, Evaluation] = {}

    def iterate(self, iteration: int, programs: dict[str, str]) -> None:
        for name, program in programs.items():
            self.cascade.submit(candidate_id=name, program=program, iteration=iteration)
        while self.cascade.in_flight:
            self.verdicts.update(self.cascade.completed(timeout=None))

    def one(self, program: str, *, iteration: int = 10**6, name: str = "x") -> Evaluation:
        self.iterate(iteration, {name: program})
        return self.verdicts[name]

    def stages_of(self, name: str) -> list[int]:
        return [stage for candidate, stage in self.pool.runs if candidate == name]


def population(
    draw: Callable[[random.Random], tuple[float, float]],
    *,
    iterations: int,
    k: int = 8,
    seed: int = 5,
) -> list[dict[str, str]]:
    """Return the programs of each iteration, by id; ``draw`` gives (proxy, full score)."""
    rng = random.Random(seed)
    return [
        {f"{iteration}.{index}": "{!r} {!r}".format(*draw(rng)) for index in range(k)}
        for iteration in range(iterations)
    ]


def correlated(rho: float) -> Callable[[random.Random], tuple[float, float]]:
    def draw(rng: random.Random) -> tuple[float, float]:
        full = rng.gauss(0, 1)
        return rho * full + math.sqrt(1 - rho**2) * rng.gauss(0, 1), full

    return draw


def run(setting: Setting, iterations: list[dict[str, str]], *, first: int = 0) -> Setting:
    for number, programs in enumerate(iterations, start=first):
        setting.iterate(number, programs)
    return setting


# One candidate's way.


def test_a_problem_with_one_stage_is_evaluated_as_without_a_cascade() -> None:
    setting = Setting()
    given = {"a": "1 2", "b": "1 3 0:timeout"}
    setting.iterate(0, given)
    assert setting.pool.runs == [("a", 0), ("b", 0)]
    assert setting.verdicts == {name: setting.pool._judge(text, 0) for name, text in given.items()}


def test_a_verdict_has_the_metrics_of_every_stage_and_the_sum_of_their_costs() -> None:
    verdict = Setting("tiny", "small").one("7 9")
    assert verdict == Evaluation(
        score=9.0,
        failure=None,
        metrics={
            "score": 9.0,
            "other": 2.0,
            "tiny.score": 7.0,
            "tiny.other": 0.0,
            "small.score": 7.0,
            "small.other": 1.0,
        },
        artifacts={"stdout": "stage 2"},
        seconds=0.25 + 0.5 + 0.75,
        peak_bytes=1000,
    )


@pytest.mark.parametrize("kind", ["error", "timeout", "memory", "crash", "output", "rejected"])
@pytest.mark.parametrize("stage", [0, 1, 2])
def test_a_failure_at_any_stage_is_final(kind: str, stage: int) -> None:
    setting = Setting("tiny", "small")
    verdict = setting.one(f"7 9 {stage}:{kind}")
    assert setting.stages_of("x") == list(range(stage + 1))
    assert (verdict.score, verdict.failure) == (None, Failure(kind))
    assert verdict.message == "it failed"
    proxies = {"tiny.score": 7.0, "small.score": 7.0}
    shown = {name: v for name, v in verdict.metrics.items() if name.endswith("score")}
    assert shown == dict(list(proxies.items())[:stage])
    assert verdict.seconds == sum(0.25 * (each + 1) for each in range(stage + 1))


def test_what_is_not_in_flight_is_nothing_to_wait_for() -> None:
    cascade = Setting("tiny").cascade
    assert (cascade.completed(timeout=None), cascade.in_flight) == ([], 0)


def test_a_candidate_is_in_flight_until_its_last_stage_is_over() -> None:
    setting = Setting("tiny")
    setting.cascade.submit(candidate_id="a", program="1 2", iteration=0)
    setting.cascade.submit(candidate_id="b", program="1 2 0:error", iteration=0)
    assert setting.cascade.in_flight == 2
    assert [name for name, _ in setting.cascade.completed(timeout=0)] == ["b"]  # "a" goes on
    assert setting.cascade.in_flight == 1
    assert [name for name, _ in setting.cascade.completed(timeout=None)] == ["a"]
    assert setting.cascade.in_flight == 0


def test_every_stage_of_an_earlier_iteration_comes_before_a_later_one() -> None:
    setting = Setting("tiny", "small")
    setting.iterate(7, {"a": "1 2", "b": "2 1 1:error"})
    setting.iterate(-1, {"initial": "1 1"})
    assert setting.stages_of("a") == [0, 1, 2]
    assert setting.pool.orders == {"a": {7}, "b": {7}, "initial": {-1}}


# Who goes on.


def told(
    direction: Direction = Direction.MAXIMISE, *, scores: int = 64, **changes: float
) -> Setting:
    """Return a setting that was told the proxy scores 0, 1, 2, ... of iterations 0, 1, 2, ..."""
    setting = Setting("tiny", direction=direction, settings=replace(SETTINGS, **changes))
    for number in range(scores):
        evaluation = Evaluation(
            score=None, failure=Failure.SCREENED, metrics={"tiny.score": float(number)}
        )
        setting.cascade.tell(f"{number}.0", evaluation, iteration=number)
    return setting


def not_audited(setting: Setting) -> str:
    """Return the id of a candidate that is no audit."""
    screen = setting.cascade._screens[0]
    return next(f"99.{n}" for n in range(99) if not screen.audits(f"99.{n}"))


@pytest.mark.parametrize(
    ("direction", "keep", "last_to_pass", "first_to_fail"),
    [
        (Direction.MAXIMISE, 0.5, "32", "31"),  # the 32 best of 64
        (Direction.MINIMISE, 0.5, "31", "32"),
        (Direction.MAXIMISE, 0.25, "48", "47"),
        (Direction.MINIMISE, 0.25, "15", "16"),
        (Direction.MAXIMISE, 0.001, "63", "62.999"),
        (Direction.MAXIMISE, 0.99, "0", "-0.001"),
    ],
)
def test_the_best_share_goes_on(
    direction: Direction, keep: float, last_to_pass: str, first_to_fail: str
) -> None:
    setting = told(direction, keep=keep)
    name = not_audited(setting)
    assert setting.one(f"{last_to_pass} 5", name=name).score == 5.0
    screened = setting.one(f"{first_to_fail} 5", name=name)
    assert (screened.score, screened.failure) == (None, Failure.SCREENED)
    assert screened.metrics == {"tiny.score": float(first_to_fail), "tiny.other": 0.0}
    expected = (
        f"stage tiny: score {float(first_to_fail)!r} does not reach {float(last_to_pass)!r}, "
        f"as the best {100 * keep:.3g} % of recent programs do"
    )
    assert screened.message == expected
    assert screened.artifacts == {"stdout": "stage 0"}
    assert (screened.seconds, screened.peak_bytes) == (0.25, 1000)


def test_the_threshold_follows_the_population() -> None:
    setting = told(scores=1000)
    name = not_audited(setting)
    assert setting.one("967 1", name=name).failure is Failure.SCREENED  # the window is 936 to 999
    assert setting.one("968 1", name=name).score == 1.0
    assert setting.one("40 1", iteration=64, name=name).score == 1.0  # it knew 0 to 63


def test_without_enough_scores_everything_goes_on() -> None:
    few, enough = told(scores=FEWEST_SCORES - 1), told(scores=FEWEST_SCORES)
    assert few.one("-1e9 1", name=not_audited(few)).score == 1.0
    assert enough.one("-1e9 1", name=not_audited(enough)).failure is Failure.SCREENED


def test_keeping_all_runs_the_full_stage_alone() -> None:
    keeps = replace(SETTINGS, keep=1.0)
    setting = Setting("tiny", "small", settings=keeps)
    given = {"a": "-1e9 1", "b": "1 3 2:timeout", "c": "1 4 0:error"}
    setting.iterate(0, given)
    assert setting.pool.runs == [("a", 2), ("b", 2), ("c", 2)]
    assert setting.verdicts == {name: setting.pool._judge(text, 2) for name, text in given.items()}


def test_keeping_all_goes_on_after_verdicts_of_a_cheap_stage() -> None:
    """A run of an earlier version, whose cheap stages ran, is resumed."""
    setting = told(keep=1.0)
    assert setting.one("-1e9 1", name=not_audited(setting)).score == 1.0
    assert setting.stages_of(not_audited(setting)) == [1]


def test_equal_scores_all_go_on() -> None:
    setting = run(Setting("tiny"), population(lambda rng: (0.5, rng.random()), iterations=20))
    assert {each.failure for each in setting.verdicts.values()} == {None}


def test_each_stage_has_a_threshold_of_its_own() -> None:
    setting = run(Setting("tiny", "small"), population(correlated(0.9), iterations=60))
    failed_at = {
        each.message.split(":")[0] for each in setting.verdicts.values() if each.failure is not None
    }
    assert failed_at == {"stage tiny", "stage small"}
    full = sum(each.score is not None for each in setting.verdicts.values())
    assert 0.2 < full / 480 < 0.45  # a quarter, the audits and the first ones


# Audits.


def test_a_share_of_the_rejected_is_fully_evaluated() -> None:
    setting = told(scores=64, audit=0.2)
    names = {f"64.{index}": "0 5" for index in range(2000)}
    setting.iterate(64, names)
    audited = {name for name in names if setting.verdicts[name].score is not None}
    assert 0.16 < len(audited) / 2000 < 0.24  # four standard deviations
    assert all((AUDITED in setting.verdicts[name].metrics) == (name in audited) for name in names)
    assert all(setting.verdicts[name].metrics["tiny.score"] == 0.0 for name in audited)

    again = told(scores=64, audit=0.2)
    again.iterate(64, dict(reversed(names.items())))
    assert again.verdicts == setting.verdicts
    other = Setting("tiny", settings=replace(SETTINGS, audit=0.2), seed=2)
    choices = [s.cascade._screens[0].audits for s in (setting, other)]
    assert [choices[0](name) for name in names] != [choices[1](name) for name in names]


def test_an_audit_goes_straight_to_the_full_stage() -> None:
    setting = Setting("tiny", "small", settings=replace(SETTINGS, audit=1.0))
    run(setting, population(correlated(0.9), iterations=10))
    audited = [name for name, each in setting.verdicts.items() if AUDITED in each.metrics]
    ways = [setting.stages_of(name) for name in audited]
    assert [0, 2] in ways and [0, 1, 2] in ways
    assert all(each.score is not None for each in setting.verdicts.values())
    for name, way in zip(audited, ways, strict=True):
        assert ("small.score" in setting.verdicts[name].metrics) == (way == [0, 1, 2])


# Switching a stage off.


def test_a_proxy_that_says_nothing_is_switched_off_for_good(
    caplog: pytest.LogCaptureFixture,
) -> None:
    setting = Setting("tiny")
    with caplog.at_level(logging.WARNING):
        run(setting, population(correlated(0.0), iterations=100))
    (off,) = setting.cascade.switched_off.values()
    assert off.stage == "tiny" and 5 < off.iteration < 90
    assert off.correlation + off.error < 0.3 and off.pairs >= SETTINGS.window
    assert [setting.stages_of(f"{i}.0")[0] for i in (off.iteration - 1, off.iteration)] == [0, 1]
    for iteration in range(off.iteration, 100):
        assert setting.stages_of(f"{iteration}.3") == [1]
        assert setting.verdicts[f"{iteration}.3"].score is not None
    (message,) = caplog.messages
    assert f"stage tiny is switched off from iteration {off.iteration} on" in message
    assert f"{off.correlation:.3f}" in message and "correlation_min" in message


def test_a_proxy_that_ranks_well_stays_on_and_saves_most_of_the_work() -> None:
    setting = run(Setting("tiny"), population(correlated(0.9), iterations=150))
    assert not setting.cascade.switched_off
    full = sum(stage == 1 for _, stage in setting.pool.runs)
    assert 0.5 < full / 1200 < 0.65  # keep 0.5, and an audit for every tenth of the others
    best = max(each.score or -9 for each in setting.verdicts.values())
    assert best > 2.5


def test_a_proxy_that_ranks_the_wrong_way_round_is_switched_off_whatever_the_direction() -> None:
    for direction in Direction:
        setting = Setting("tiny", direction=direction)
        run(setting, population(correlated(-0.9), iterations=60))
        assert setting.cascade.switched_off["tiny"].correlation < -0.3


def test_only_the_stage_that_ranks_badly_is_switched_off() -> None:
    # At both stages the proxy is the same here, so the bad one is told by hand.
    setting = Setting("tiny", "small")
    rng = random.Random(3)
    for number in range(400):
        full = rng.gauss(0, 1)
        metrics = {"tiny.score": rng.gauss(0, 1), "small.score": full + rng.gauss(0, 0.2)}
        metrics |= {AUDITED: 1.0} if number % 4 == 0 else {}
        evaluation = Evaluation(score=full, failure=None, metrics=metrics)
        setting.cascade.tell(f"{number}.0", evaluation, iteration=number)
    setting.one("100 1")
    assert set(setting.cascade.switched_off) == {"tiny"}
    assert setting.stages_of("x") == [1, 2]


def test_candidates_that_fail_the_full_stage_say_nothing_of_the_proxy() -> None:
    programs = population(correlated(0.0), iterations=60)
    failing = [{name: f"{text} 1:timeout" for name, text in each.items()} for each in programs]
    assert not run(Setting("tiny"), failing).cascade.switched_off


def test_without_enough_audits_nothing_is_switched_off() -> None:
    def setting_with(audits: int) -> Setting:
        setting, rng = Setting("tiny"), random.Random(1)
        for number in range(200):
            metrics = {"tiny.score": rng.random()} | ({AUDITED: 1.0} if number < audits else {})
            evaluation = Evaluation(score=-metrics["tiny.score"], failure=None, metrics=metrics)
            setting.cascade.tell(f"{number}.0", evaluation, iteration=number)
        setting.one("9 9")
        return setting

    assert not setting_with(FEWEST_AUDITS - 1).cascade.switched_off
    assert setting_with(FEWEST_AUDITS).cascade.switched_off["tiny"].pairs == SETTINGS.window


@pytest.mark.parametrize("window", [20, 64])
def test_the_correlation_is_looked_at_once_for_each_window_of_new_pairs(window: int) -> None:
    setting = Setting("tiny", settings=replace(SETTINGS, window=window))
    for number in range(200):  # pairs that say nothing, then ones that rank the wrong way round
        proxy = float(number % 7) if number < 3 * window else float(-number)
        metrics = {"tiny.score": proxy, AUDITED: 1.0}
        evaluation = Evaluation(score=float(number), failure=None, metrics=metrics)
        setting.cascade.tell(f"{number}.0", evaluation, iteration=number)
    setting.one("9 9", iteration=200)
    off = setting.cascade.switched_off["tiny"]
    assert off.iteration % window == 0 and off.pairs == off.iteration <= 200


def test_a_proxy_better_than_the_limit_is_not_switched_off_by_looking_often() -> None:
    for seed in range(8):
        setting = Setting("tiny", seed=seed)
        run(setting, population(correlated(0.5), iterations=200, seed=seed))
        assert not setting.cascade.switched_off


# Resuming.


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("killed_after", [1, 20, 50])
def test_a_resumed_run_decides_as_it_would_have(rho: float, killed_after: int) -> None:
    iterations = population(correlated(rho), iterations=70)
    whole = run(Setting("tiny", "small"), iterations)
    assert Failure.SCREENED in {each.failure for each in whole.verdicts.values()}

    last = killed_after - 1
    before = run(Setting("tiny", "small", shuffled=random.Random(1)), iterations[:killed_after])
    after = Setting("tiny", "small", shuffled=random.Random(3))
    lost = {f"{last}.{index}": iterations[last][f"{last}.{index}"] for index in (0, 3, 7)}
    for name in sorted(set(before.verdicts) - set(lost), key=hash):
        after.verdicts[name] = before.verdicts[name]
        after.cascade.tell(name, before.verdicts[name], iteration=int(name.split(".")[0]))
    after.iterate(last, lost)
    run(after, iterations[killed_after:], first=killed_after)
    assert after.verdicts == whole.verdicts
    assert after.cascade.switched_off == whole.cascade.switched_off


def test_what_another_island_has_judged_decides_nothing_after_a_resume_either() -> None:
    """Migrants bring the scores of their origin's cheap stages along."""
    settings = config.resolve(["evaluation.cascade.keep=0.5"])
    history = RunHistory(direction=Direction.MAXIMISE)
    program = read("def f(x):\n    return x\n")
    assert program is not None
    verdict = Evaluation(score=1.0, failure=None, metrics={"score": 1.0, "tiny.score": 1.0})
    events: list[Event] = [Session(number=0, engine="0", fingerprint="f")]
    for number in range(2 * FEWEST_SCORES):
        migrant = Migrant(number=number, origin=1, candidate=f"{number}.0", program=program)
        events += [migrant, Verdict(candidate=migrant.id, evaluation=verdict)]
    for event in events:
        history.fold(Recorded(session=0, elapsed=0.0, event=event))
    setting = Setting("tiny")
    setting.cascade = told_cascade(settings, setting.problem, history, setting.pool)
    assert setting.one("0.1 0.5").score == 0.5  # too little is known to screen anything


def test_the_order_in_which_verdicts_come_in_decides_nothing() -> None:
    iterations = population(correlated(0.3), iterations=60)
    whole = run(Setting("tiny", "small"), iterations)
    for seed in range(3):
        other = run(Setting("tiny", "small", shuffled=random.Random(seed)), iterations)
        assert other.verdicts == whole.verdicts
        assert other.cascade.switched_off == whole.cascade.switched_off


def test_telling_again_changes_nothing() -> None:
    setting = told()
    before = setting.cascade._screens[0].threshold(10**6)
    better = Evaluation(score=1.0, failure=None, metrics={"tiny.score": 1e9})
    for number in range(64):
        setting.cascade.tell(f"{number}.0", better, iteration=number)
    assert setting.cascade._screens[0].threshold(10**6) == before


# The estimate.


def test_a_rank_correlation_worked_by_hand() -> None:
    # Ranks of x: 1/2, 3/2 + 1/2 = 2, 4; weights 1, 2, 2. Ranks of y: 1/2, 4, 2.
    # Means: (1/2 + 4 + 8) / 5 = 5/2 for both. Deviations of x: -2, -1/2, 3/2; of y: -2, 3/2, -1/2.
    # Covariance: 4 - 2 * 3/4 - 2 * 3/4 = 1; variances: 4 + 2/4 + 2 * 9/4 = 9. So 1/9.
    assert rank_correlation([1, 5, 7], [0, 9, 3], [1, 2, 2]) == pytest.approx(1 / 9, abs=1e-15)


@given(
    st.lists(
        st.tuples(st.integers(-4, 4), st.floats(-1e300, 1e300), st.integers(1, 3)), max_size=12
    )
)
def test_a_weight_counts_as_so_many_copies(pairs: list[tuple[int, float, int]]) -> None:
    x, y, w = ([pair[i] for pair in pairs] for i in range(3))
    ours = rank_correlation(x, y, w)
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert ours is None
        return
    theirs = spearmanr(np.repeat(x, w), np.repeat(y, w)).statistic
    assert ours == pytest.approx(theirs, abs=1e-12)


def test_the_estimate_is_that_of_the_whole_population_and_not_of_the_passed_ones() -> None:
    rng = np.random.default_rng(4)
    full = rng.standard_normal(40_000)
    proxy = 0.6 * full + 0.8 * rng.standard_normal(40_000)
    true = spearmanr(proxy, full).statistic
    passed = proxy >= np.median(proxy)
    seen = passed | (rng.random(40_000) < 0.1)
    weights = np.where(passed, 1.0, 10.0)[seen]
    estimate = rank_correlation(proxy[seen], full[seen], weights)
    assert estimate == pytest.approx(true, abs=0.02)
    assert spearmanr(proxy[passed], full[passed]).statistic < true - 0.15


def test_two_standard_errors_worked_by_hand() -> None:
    # Weights 1 (x 9) and 9 (x 1): n = 18^2 / 90 = 3.6.
    expected = math.tanh(math.atanh(0.25) + 2 * math.sqrt(1.06 / 0.6)) - 0.25
    assert upward_error(0.25, [1.0] * 9 + [9.0]) == pytest.approx(expected, rel=1e-12)
    assert upward_error(0.25, [1.0] * 3) == 0.75  # too few to say anything
    assert upward_error(-1.0, [1.0] * 50) == 0.0
    assert upward_error(1.0, [1.0] * 50) == 0.0
