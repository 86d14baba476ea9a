"""Runs from a pool against a target: when it counts as reached, and a real one without a model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.pools import DEFAULTS, jobs_of, reached, summary
from bench.search import Job
from engine.core import Direction, UserError

MAXIMISE, MINIMISE = Direction.MAXIMISE, Direction.MINIMISE
ROOT = Path(__file__).parents[2]
MEAN = """\
import numpy as np

def run_signal_processing(noisy_signal, window_size=20):
    weights = np.maximum(np.linspace({first}, 1, window_size), 0)
    return {{"filtered_signal": np.convolve(noisy_signal, weights[::-1] / weights.sum(), "valid")}}
"""


@pytest.mark.parametrize(
    ("direction", "sign", "target", "expected"),
    [
        (MAXIMISE, 1, 0.55, 4),
        (MAXIMISE, 1, 0.6, 4),  # as good as the target will do
        (MAXIMISE, 1, 0.7, 9),
        (MAXIMISE, 1, 0.71, None),
        (MINIMISE, -1, -0.6, 4),
        (MINIMISE, -1, -0.71, None),
    ],
)
def test_the_first_candidate_that_is_good_enough_counts(
    direction: Direction, sign: int, target: float, expected: int | None
) -> None:
    run = {"improvements": [(2, sign * 0.5), (4, sign * 0.6), (9, sign * 0.7)]}
    assert reached(run, target, direction) == expected


def test_a_summary_counts_the_runs_that_reached_the_target() -> None:
    cost = {"evaluated": 10, "valid": 5, "children": 12, "generated_tokens": 9, "seconds": 1.5}
    runs = {
        0: {"initial_score": 1.0, "best_score": 3.0, "improvements": [[4, 3.0]], **cost},
        1: {"initial_score": 1.0, "best_score": 1.5, "improvements": [[2, 1.5]], **cost},
        2: {"initial_score": 1.0, "best_score": 2.0, "improvements": [[7, 2.0]], **cost},
    }
    figures = summary(runs, 2.0, MAXIMISE)
    assert (figures["runs"], figures["reached"], figures["first"]) == (3, 2, 1.0)
    assert figures["median_candidates_of_those"] == 5.5
    assert [each["reached_at"] for each in figures["seeds"].values()] == [4, None, 7]
    assert summary({1: runs[1]}, 2.0, MAXIMISE)["median_candidates_of_those"] is None


def test_jobs_take_models_in_turns_and_end_at_the_target() -> None:
    jobs = jobs_of({**DEFAULTS, "seeds": "7,8"})
    assert [(job.seed, job.method) for job in jobs] == [
        *((7, "smollm2"), (7, "mutation")),
        *((8, "smollm2"), (8, "mutation")),
    ]
    settings = jobs[1].settings
    assert (settings.model.kind, settings.seed) == ("mutation", 7)
    assert (settings.budget.target, settings.budget.candidates) == (2.6359, 100)
    assert settings.pool.sources[0].endswith("evaluators/circle_packing/pool")
    assert isinstance(jobs[0], Job) and jobs[0].key != jobs[1].key
    phases = "pipeline.overlap=false search.k=4"
    (other, *_) = jobs_of({**DEFAULTS, "seeds": "7,8", "settings": phases})
    assert (other.settings.pipeline.overlap, other.settings.search.k) == (False, 4)
    assert other.key != jobs[0].key  # so it is run beside the other


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"problem": "nope"}, "problem=nope is none of"),
        ({"models": "smollm2,nope"}, "unknown model 'nope'"),
        ({"problem": "eplb"}, "problem eplb comes with no pool"),
        ({"seeds": "x"}, "seeds=x are no whole numbers"),
        ({"target": "best"}, "target=best is no number"),
    ],
)
def test_bad_options_are_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        jobs_of({**DEFAULTS, **options})


@pytest.mark.slow
def test_a_run_begins_with_the_pool_and_is_kept(tmp_path: Path) -> None:
    """The pool's programs are no candidates, nor what they score an improvement."""
    sources = tmp_path / "mine"
    sources.mkdir()
    for number, first in enumerate((-1, -3)):
        (sources / f"{number}.py").write_text(MEAN.format(first=first))
    out = tmp_path / "pools.jsonl"
    arguments = ["problem=signal", f"sources={sources}", "models=mutation", "seeds=3"]
    command = [sys.executable, "-m", "bench.pools", *arguments, "candidates=8", "target=5"]
    for _ in range(2):  # the second time nothing is left to do
        done = subprocess.run(
            [*command, f"out={out}"],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert done.returncode == 0, done.stderr
    (line,) = out.read_text().splitlines()
    kept = json.loads(line)
    figures = json.loads(done.stdout.splitlines()[-1])["models"]["mutation"]
    assert (figures["runs"], figures["reached"]) == (1, 0)
    assert figures["first"] == kept["initial_score"] == pytest.approx(0.5353, abs=1e-4)
    assert figures["seeds"]["3"]["evaluated"] == kept["evaluated"] == 8
    assert all(
        1 <= count <= 8 and score > figures["first"] for count, score in kept["improvements"]
    )
