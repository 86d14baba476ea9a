"""Search methods compared by their runs: medians, ranks, paired tests, and a table of them.

What each figure is stands in ``bench.search``. Does not cover making the runs.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from scipy import stats

from bench.figures import holm, paired
from bench.methods import BASELINE
from engine.core import Direction
from engine.report.analysis.figures import median_interval

Run = dict[str, Any]
"""The figures of one run, as ``bench.search.figures`` returns them."""
BySeed = dict[int, Run]


def compared(
    runs: Mapping[str, Mapping[str, BySeed]], directions: Mapping[str, Direction]
) -> dict[str, Any]:
    """Return the figures of each problem's methods, and those over all problems.

    Args:
        runs: by problem, method and seed.
        directions: of the problems' scores.
    """
    ranked = {problem: ranks(runs[problem], directions[problem]) for problem in runs}
    result: dict[str, Any] = {"problems": {}, "over_problems": {}}
    for problem, by_method in runs.items():
        each = {method: summary(by_seed) for method, by_seed in by_method.items()}
        for method, by_seed in ranked[problem].items():
            each[method]["mean_rank"] = _mean(by_seed.values())
        sign = 1 if directions[problem] is Direction.MAXIMISE else -1
        gains = {
            method: _differences(by_method, method, lambda run, s=sign: s * run["best_score"])
            for method in by_method
        }
        _add_tests(each, gains, "better_than_baseline")
        result["problems"][problem] = each
    methods = list(dict.fromkeys(method for by_method in runs.values() for method in by_method))
    overall: dict[str, dict[str, Any]] = {
        method: {
            "mean_rank": _mean(
                rank for each in ranked.values() for rank in each.get(method, {}).values()
            )
        }
        for method in methods
    }
    gains = {
        method: [
            gain
            for each in ranked.values()
            for gain in _differences(each, method, lambda rank: -rank)
        ]
        for method in methods
    }
    _add_tests(overall, gains, "rank_gain_over_baseline")
    result["over_problems"] = overall
    return result


def summary(by_seed: BySeed) -> dict[str, Any]:
    """Return what one method's runs on one problem come to by themselves."""
    each = list(by_seed.values())
    firsts = [run["first_improvement"] for run in each]
    return {
        "runs": len(each),
        "best_score": median_interval([run["best_score"] for run in each]),
        "first_improvement": statistics.median(
            run["evaluated"] + 1 if first is None else first
            for run, first in zip(each, firsts, strict=True)
        ),
        "improved_runs": sum(first is not None for first in firsts),
        "seconds": statistics.median(run["seconds"] for run in each),
        "generated_tokens": statistics.median(run["generated_tokens"] for run in each),
        "valid_share": sum(run["valid"] for run in each)
        / max(1, sum(run["evaluated"] for run in each)),
    }


def ranks(by_method: Mapping[str, BySeed], direction: Direction) -> dict[str, dict[int, float]]:
    """Return each method's rank by seed, over the seeds that all methods have; 1 for the best."""
    shared = set.intersection(*(set(by_seed) for by_seed in by_method.values()))
    sign = -1 if direction is Direction.MAXIMISE else 1
    found: dict[str, dict[int, float]] = {method: {} for method in by_method}
    for seed in sorted(shared):
        scores = [sign * by_seed[seed]["best_score"] for by_seed in by_method.values()]
        for method, rank in zip(by_method, stats.rankdata(scores), strict=True):
            found[method][seed] = float(rank)
    return found


def _differences(
    by_method: Mapping[str, Mapping[int, Any]], method: str, value: Callable[[Any], float]
) -> list[float]:
    """Return a method's values minus the baseline's, for the seeds that both have."""
    own, base = by_method[method], by_method.get(BASELINE, {})
    if method == BASELINE:
        return []
    return [value(own[seed]) - value(base[seed]) for seed in sorted(set(own) & set(base))]


def _add_tests(
    each: Mapping[str, dict[str, Any]], gains: Mapping[str, Sequence[float]], key: str
) -> None:
    """Add the paired comparison of each method that has two or more gains."""
    tests = {method: paired(values) for method, values in gains.items() if len(values) > 1}
    # Where no run differs there is no test, and nothing to reject.
    p_values = {method: test["wilcoxon_p"] for method, test in tests.items()}
    corrected = holm({method: 1.0 if p is None else p for method, p in p_values.items()})
    for method, test in tests.items():
        each[method][key] = {**test, "holm_p": corrected[method]}


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return statistics.fmean(numbers) if numbers else None


def table(result: Mapping[str, Any]) -> str:
    """Return the figures as text, a line for each problem and method."""
    lines = [
        f"{'problem':16} {'method':12} {'median best (interval)':34} {'rank':>5} {'gain':>9} "
        f"{'Holm p':>7} {'first':>6} {'seconds':>8} {'tokens':>8} {'valid':>6}"
    ]
    for problem, by_method in result["problems"].items():
        for method, each in by_method.items():
            best, test = each["best_score"], each.get("better_than_baseline", {})
            score = f"{best['median']:.6f} ({best['low']:.6f} to {best['high']:.6f})"
            lines.append(
                f"{problem:16} {method:12} {score:34} {_number(each.get('mean_rank'), '5.2f')} "
                f"{_number(test.get('mean'), '+9.5f')} {_number(test.get('holm_p'), '7.3f')} "
                f"{each['first_improvement']:6.1f} {each['seconds']:8.1f} "
                f"{each['generated_tokens']:8.0f} {each['valid_share']:6.1%}"
            )
    for method, each in result["over_problems"].items():
        test = each.get("rank_gain_over_baseline", {})
        lines.append(
            f"{'all problems':16} {method:12} {'':34} {_number(each['mean_rank'], '5.2f')} "
            f"{_number(test.get('mean'), '+9.2f')} {_number(test.get('holm_p'), '7.3f')}"
        )
    return "\n".join(lines)


def _number(value: float | None, form: str) -> str:
    width = int(form.lstrip("+").split(".")[0])
    return "-".rjust(width) if value is None else format(value, form)
