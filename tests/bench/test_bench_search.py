"""The method table: its statistics by hand, and that it goes on where it was cut short."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.comparison import BySeed, compared, ranks, summary, table
from bench.figures import holm
from bench.methods import BASELINE, METHODS
from bench.search import DEFAULTS, Job, jobs_of
from engine.core import Direction, UserError
from engine.report.analysis.figures import median_interval

MAXIMISE, MINIMISE = Direction.MAXIMISE, Direction.MINIMISE
ROOT = Path(__file__).parents[2]


def runs(*scores: float, firsts: tuple[int | None, ...] = ()) -> BySeed:
    """Return runs of seeds 0, 1, ... with these best scores."""
    firsts = firsts or (3,) * len(scores)
    return {
        seed: {
            "best_score": score,
            "first_improvement": first,
            "evaluated": 10,
            "valid": 5 + seed,
            "seconds": 2.0 + seed,
            "generated_tokens": 100 * seed,
        }
        for seed, (score, first) in enumerate(zip(scores, firsts, strict=True))
    }


def test_a_median_interval_has_the_confidence_that_it_says() -> None:
    # P(all five on one side) is 2 / 2^5; P(Bin(6, 1/2) < 1) is 1/64, P(Bin(9, 1/2) < 2) 10/512.
    five = median_interval([5, 1, 4, 2, 3])
    assert five == {"median": 3, "low": 1, "high": 5, "confidence": pytest.approx(1 - 2 / 32)}
    six = median_interval(range(6))
    assert (six["low"], six["high"], six["confidence"]) == (0, 5, pytest.approx(1 - 2 / 64))
    nine = median_interval(range(9))
    assert (nine["low"], nine["high"], nine["confidence"]) == (1, 7, pytest.approx(1 - 20 / 512))
    assert median_interval([7.0]) == {"median": 7, "low": 7, "high": 7, "confidence": 0}


def test_holm_multiplies_the_smallest_most_and_never_turns_an_order_round() -> None:
    # Four tests: 0.01 * 4, then 0.02 * 3, then 0.04 * 2, then 0.03 -> after it, so 0.08 too.
    corrected = holm({"a": 0.04, "b": 0.01, "c": 0.02, "d": 0.05})
    expected = {"b": 0.04, "c": 0.06, "a": 0.08, "d": 0.08}
    assert corrected == pytest.approx(expected)
    assert holm({"a": 0.9, "b": 0.6}) == {"b": 1.0, "a": 1.0}
    assert holm({}) == {}


@pytest.mark.parametrize("direction", [MAXIMISE, MINIMISE])
def test_ranks_are_shared_by_ties_and_count_seeds_that_all_have(direction: Direction) -> None:
    sign = 1 if direction is MAXIMISE else -1
    by_method = {
        "a": runs(sign * 3.0, sign * 1.0, sign * 9.0),
        "b": runs(sign * 2.0, sign * 1.0),
        "c": runs(sign * 1.0, sign * 0.5, sign * 2.0),
    }
    assert ranks(by_method, direction) == {
        "a": {0: 1.0, 1: 1.5},
        "b": {0: 2.0, 1: 1.5},
        "c": {0: 3.0, 1: 3.0},
    }


def test_a_summary_counts_runs_without_an_improvement_as_more_than_the_budget() -> None:
    figures = summary(runs(0.5, 0.7, 0.6, firsts=(None, 4, None)))
    assert figures["first_improvement"] == 11 and figures["improved_runs"] == 1
    assert figures["best_score"]["median"] == 0.6
    assert (figures["seconds"], figures["generated_tokens"]) == (3.0, 100)
    assert figures["valid_share"] == pytest.approx((5 + 6 + 7) / 30)


def test_methods_are_compared_with_the_baseline_seed_by_seed() -> None:
    up = {
        BASELINE: runs(0.5, 0.6, 0.7, 0.8, 0.9),
        "better": runs(0.6, 0.8, 1.0, 1.2, 1.4),
        "same": runs(0.5, 0.6, 0.7, 0.8, 0.9),
    }
    down = {name: runs(*(-run["best_score"] for run in each.values())) for name, each in up.items()}
    result = compared({"up": up, "down": down}, {"up": MAXIMISE, "down": MINIMISE})
    for problem in ("up", "down"):
        each = result["problems"][problem]
        assert "better_than_baseline" not in each[BASELINE]
        better = each["better"]["better_than_baseline"]
        assert better["mean"] == pytest.approx(0.3)  # of 0.1, 0.2, 0.3, 0.4 and 0.5
        assert (better["wins"], better["losses"]) == (5, 0)
        # All five of a sign: 2 / 2^5, times two methods.
        assert better["wilcoxon_p"] == pytest.approx(0.0625)
        assert better["holm_p"] == pytest.approx(0.125)
        assert each["same"]["better_than_baseline"]["wilcoxon_p"] is None
        assert each["same"]["better_than_baseline"]["holm_p"] == 1.0
        assert (each["better"]["mean_rank"], each["same"]["mean_rank"]) == (1.0, 2.5)
    overall = result["over_problems"]["better"]
    assert overall["mean_rank"] == 1.0
    assert overall["rank_gain_over_baseline"]["mean"] == pytest.approx(1.5)
    assert overall["rank_gain_over_baseline"]["wins"] == 10
    assert overall["rank_gain_over_baseline"]["holm_p"] < 0.05
    assert json.loads(json.dumps(result)) == result
    text = table(result)
    assert len(text.splitlines()) == 1 + 2 * 3 + 3
    assert "0.125" in text and "nan" not in text


def test_one_seed_and_no_baseline_give_a_table_without_tests() -> None:
    result = compared({"p": {"k1": runs(0.5), "k4": runs(0.6)}}, {"p": MAXIMISE})
    assert "better_than_baseline" not in result["problems"]["p"]["k4"]
    assert "0.600000" in table(result)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_is_a_configuration_with_the_budget_alone(method: str) -> None:
    settings = Job(problem="signal", method=method, seed=4, candidates=17).settings
    assert (settings.seed, settings.budget.candidates) == (4, 17)
    assert settings.budget.seconds is None


def test_jobs_take_methods_in_turns() -> None:
    jobs = jobs_of({**DEFAULTS, "methods": "k1,k4", "seeds": "7,8", "problems": "signal"})
    assert [(job.seed, job.method) for job in jobs] == [
        *((7, "k1"), (7, "k4")),
        *((8, "k1"), (8, "k4")),
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"methods": "k1,none"}, "methods=none is none of one-island"),
        ({"problems": "nope"}, "problems=nope is none of"),
        ({"seeds": "1,x"}, "seeds=1,x are no whole numbers"),
        ({"seeds": "-1"}, "seed is -1"),
        ({"candidates": "0"}, "candidates=0 is no number above 0"),
    ],
)
def test_bad_options_are_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        jobs_of({**DEFAULTS, **options})


def search(out: Path, *arguments: str) -> dict[str, Any]:
    """Run the benchmark with the null method and return its last line."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench.search", "problems=signal", "methods=mutation"),
            *("candidates=10", f"out={out}", *arguments),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.slow
def test_finished_runs_are_kept_and_others_added(tmp_path: Path) -> None:
    out = tmp_path / "new" / "search.jsonl"
    search(out, "seeds=0")
    (first,) = out.read_text().splitlines()
    result = search(out, "seeds=0,1")
    lines = out.read_text().splitlines()
    assert lines[0] == first and len(lines) == 2
    kept = [json.loads(line) for line in lines]
    figures = result["problems"]["signal"]["mutation"]
    assert figures["runs"] == 2
    assert figures["best_score"]["high"] == max(run["best_score"] for run in kept)
    for seed, run in enumerate(kept):
        assert (run["seed"], run["evaluated"], run["method"]) == (seed, 10, "mutation")
        scores = [score for _, score in run["improvements"]]
        assert scores == sorted(scores)
        assert run["best_score"] == max([run["initial_score"], *scores])
        assert run["first_improvement"] == (run["improvements"][0][0] if scores else None)
