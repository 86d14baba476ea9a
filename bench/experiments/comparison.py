"""The arms of an experiment beside each other: medians, intervals, paired tests.

Scores are compared at equal seconds, at equal candidates, and at the budget's equal amounts: each
run's best score after as much as the run of the problem that used least of it. A run that ended at
the score that it was to stop at keeps that score from there on.

A gain is an arm's score minus the baseline's of the same problem and seed, above 0 for better, in
shares of the way from the problem's initial score to its target. Of the gains on one problem there
are the mean with its 95 % t interval and Wilcoxon's signed-rank test; over all problems the mean
over problems with a bootstrap interval that draws seeds anew within each problem, Wilcoxon's test
over all pairs, and the exact sign-flip test that takes each problem's mean gain as one value: the
first asks about these problems, the second about others like them. Where a problem has only one
pair there is no bootstrap interval, because drawing one pair anew gives the same pair. P-values are
corrected after Holm for the number of arms, on each problem and over all. Five seeds can't give
less than 0.0625.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from bench.experiments.results import Result
from bench.experiments.table import Experiment
from bench.figures import holm, paired
from engine.core import Direction
from engine.report.analysis.figures import median_interval

_DRAWS = 9999  # of the bootstrap; the sign flips of up to 13 problems are all made
_SEED = 0

Gains = Mapping[str, Sequence[float]]
"""An arm's gains over the baseline, by problem."""


def compared(experiment: Experiment, results: Sequence[Result]) -> dict[str, Any]:
    """Return the figures of an experiment."""
    axes = tuple(dict.fromkeys((experiment.budget, "seconds", "candidates")))
    by_problem = {
        problem: [each for each in results if each["problem"] == problem]
        for problem in experiment.problems
        if any(each["problem"] == problem for each in results)
    }
    levels = {
        problem: {axis: level(runs, axis) for axis in axes} for problem, runs in by_problem.items()
    }
    problems = {
        problem: _problem(experiment, runs, levels[problem]) for problem, runs in by_problem.items()
    }
    over = {
        axis: over_problems(
            {
                arm: {
                    problem: list(gains(experiment, runs, arm, axis, levels[problem][axis]))
                    for problem, runs in by_problem.items()
                }
                for arm in experiment.arms
                if arm != experiment.baseline
            }
        )
        for axis in axes
    }
    return {
        "experiment": experiment.name,
        "budget": {experiment.budget: experiment.amount},
        "cores": experiment.cores,
        "baseline": experiment.baseline,
        "arms": {
            arm: list(own)
            for arm, own in experiment.arms.items()
            if any(each["arm"] == arm for each in results)
        },
        "commits": sorted({each["commit"] for each in results}),
        "machines": [
            dict(each) for each in sorted({tuple(run["machine"].items()) for run in results})
        ],
        "problems": problems,
        "over_problems": over,
    }


def has_stopped(run: Result) -> bool:
    """Return whether a run ended because its score was good enough, maybe before its budget did.

    Lines of earlier versions don't have ``stops_at``; no score ended the runs that are kept.
    """
    return _is_at(run.get("stops_at"), run)


def has_reached(run: Result) -> bool:
    """Return whether a run got as far as the score that it stops at, or else the target."""
    stops_at = run.get("stops_at")
    return _is_at(run["target"] if stops_at is None else stops_at, run)


def _is_at(score: float | None, run: Result) -> bool:
    """Return whether a run's best is as good as a score; there may be none."""
    better = Direction(run["direction"]).better
    return score is not None and not better(score, than=run["best_score"])


def level(runs: Sequence[Result], axis: str) -> float:
    """Return how much of something all runs have used that no good score ended."""
    went_on = [each for each in runs if not has_stopped(each)] or runs
    return min(used(each, axis) for each in went_on)


def used(run: Result, axis: str) -> float:
    """Return how much of something a run has used.

    Of wall seconds, where they were its budget, that is all: its last event came earlier where it
    waited for a long evaluation until its end.
    """
    has_all = axis == run["budget"] == "seconds" and not has_stopped(run)
    amount: float = run["amount" if has_all else axis]
    return amount


def score_at(run: Result, axis: str, most: float) -> float:
    """Return a run's best score when it had used so much of something."""
    score: float = run["curve"][0]["score"]  # the initial program's
    for each in run["curve"]:
        if each[axis] <= most:
            score = each["score"]
    return score


def scale_of(runs: Sequence[Result]) -> float:
    """Return what a gain of 1 is: the way from a problem's initial score to its target.

    Without a target it is the way to the best score of all runs; 1 where there is none to go.
    """
    initial = statistics.median(each["initial_score"] for each in runs)
    best = best_of(runs)
    target = next((each["target"] for each in runs if each["target"] is not None), best)
    return abs(target - initial) or abs(best - initial) or 1.0


def best_of(runs: Sequence[Result]) -> float:
    """Return the best score of some runs of one problem."""
    scores: list[float] = [each["best_score"] for each in runs]
    return min(scores, key=Direction(runs[0]["direction"]).key)


def gains(
    experiment: Experiment, runs: Sequence[Result], arm: str, axis: str, most: float
) -> list[float]:
    """Return an arm's gains on one problem, for the seeds that it and the baseline have."""
    own = {each["seed"]: each for each in runs if each["arm"] == arm}
    base = {each["seed"]: each for each in runs if each["arm"] == experiment.baseline}
    scale = scale_of(runs)
    sign = 1 if runs[0]["direction"] == Direction.MAXIMISE.value else -1
    return [
        sign * (score_at(own[seed], axis, most) - score_at(base[seed], axis, most)) / scale
        for seed in sorted(set(own) & set(base))
    ]


def _problem(
    experiment: Experiment, runs: Sequence[Result], levels: Mapping[str, float]
) -> dict[str, Any]:
    """Return the arms' figures on one problem."""
    arms = {
        arm: _arm([each for each in runs if each["arm"] == arm], levels)
        for arm in experiment.arms
        if any(each["arm"] == arm for each in runs)
    }
    for axis, most in levels.items():
        tests = {
            arm: paired(values)
            for arm in arms
            if arm != experiment.baseline
            and len(values := gains(experiment, runs, arm, axis, most)) > 1
        }
        # Where no run differs there is no test, and nothing to reject.
        p_values = {arm: test["wilcoxon_p"] for arm, test in tests.items()}
        corrected = holm({arm: 1.0 if p is None else p for arm, p in p_values.items()})
        for arm, test in tests.items():
            arms[arm]["gain"][axis] = {**test, "holm_p": corrected[arm]}
    return {
        # More than one where the problem changed between the runs; of earlier lines it's unknown.
        "fingerprints": sorted({each["fingerprint"] for each in runs if "fingerprint" in each}),
        "direction": runs[0]["direction"],
        "initial_score": statistics.median(each["initial_score"] for each in runs),
        "target": runs[0]["target"],
        "best_known": runs[0]["best_known"],
        "equal": levels,
        "arms": arms,
    }


def _arm(runs: Sequence[Result], levels: Mapping[str, float]) -> dict[str, Any]:
    """Return what one arm's runs on one problem come to by themselves."""

    def middle(key: str) -> float:
        return statistics.median(each[key] for each in runs)

    def share(part: str, *wholes: str) -> float:
        """Of the first of the wholes that a run has."""
        every = [next(each[whole] for whole in wholes if whole in each) for each in runs]
        return sum(each[part] for each in runs) / max(1, sum(every))

    at = {axis: [score_at(run, axis, most) for run in runs] for axis, most in levels.items()}
    hours = sum(used(each, "seconds") for each in runs) / 3600 or math.inf  # over at their start
    return {
        "runs": len(runs),
        "score": {axis: median_interval(scores) for axis, scores in at.items()},
        "deviation": {
            axis: statistics.stdev(scores) if len(scores) > 1 else None
            for axis, scores in at.items()
        },
        "best_of": best_of(runs),
        "reached": sum(map(has_reached, runs)),
        "seconds": statistics.median(used(each, "seconds") for each in runs),
        "candidates": middle("candidates"),
        "evaluations": middle("evaluations"),
        "candidates_per_hour": sum(each["candidates"] for each in runs) / hours,
        "improving_per_hour": sum(each["improving"] for each in runs) / hours,
        "improvement_share": share("improving", "children"),
        "by_k": _by_k(runs),
        "valid_share": share("valid", "judged", "candidates"),
        "generated_tokens": middle("generated_tokens"),
        "hit_rate": middle("hit_rate"),
        "idle_share": middle("idle_share"),
        "gain": {},
    }


def _by_k(runs: Sequence[Result]) -> dict[str, dict[str, float]]:
    """Return the children of calls with each K, and the share of them that improves."""
    counts: dict[int, list[int]] = {}
    for run in runs:
        for k, (children, improving) in run["by_k"].items():
            own = counts.setdefault(int(k), [0, 0])
            own[0] += children
            own[1] += improving
    return {
        str(k): {"children": children, "improvement_share": improving / children}
        for k, (children, improving) in sorted(counts.items())
    }


def over_problems(by_arm: Mapping[str, Gains]) -> dict[str, Any]:
    """Return each arm's gain over all problems; see the module."""
    tests = {
        arm: _over({problem: each for problem, each in gains.items() if each})
        for arm, gains in by_arm.items()
        if sum(map(len, gains.values())) > 1
    }
    for key in ("wilcoxon_p", "problems_p"):
        p_values = {arm: 1.0 if test[key] is None else test[key] for arm, test in tests.items()}
        for arm, p in holm(p_values).items():
            tests[arm][f"holm_{key}"] = p
    return tests


def _over(gains: Gains) -> dict[str, Any]:
    pairs = paired([each for own in gains.values() for each in own])
    means = np.array([statistics.fmean(own) for own in gains.values()])
    return {
        "mean": float(means.mean()),
        "interval_95": _interval(list(gains.values())),
        "pairs": sum(map(len, gains.values())),
        "wins": pairs["wins"],
        "losses": pairs["losses"],
        "wilcoxon_p": pairs["wilcoxon_p"],
        "problems": len(means),
        "problems_ahead": int((means > 0).sum()),
        "problems_p": _sign_flip(means),
    }


def _interval(groups: Sequence[Sequence[float]]) -> list[float] | None:
    """Return the 95 % percentile bootstrap interval of the mean of the groups' means.

    None where a group has one value, which can only be drawn again: it would seem to be certain.
    """
    if any(len(group) < 2 for group in groups):
        return None
    rng = np.random.default_rng(_SEED)
    means = np.mean(
        [rng.choice(group, size=(_DRAWS, len(group))).mean(axis=1) for group in groups], axis=0
    )
    low, high = np.quantile(means, [0.025, 0.975])
    return [float(low), float(high)]


def _sign_flip(values: np.ndarray) -> float | None:
    """Return the p-value of as large a mean where signs are chance; None for nothing to test."""
    if len(values) < 2 or not values.any():
        return None
    test = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=_DRAWS, rng=_SEED
    )
    return float(test.pvalue)
