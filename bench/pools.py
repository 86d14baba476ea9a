"""Question: how soon does a run that begins with a pool reach a target, and does a model help?

Method: real runs with one loaded model, one for each seed and model, interleaved seed by seed, each
from the same pool and an empty prefix cache, on the default's four islands, among which the pool is
shared out. A run ends at ``target``, or after ``candidates`` evaluated candidates; the pool's
programs do not count. ``mutation`` asks no model: it is the null
hypothesis that a language model has to beat.

Reported for each model: how many runs reached the target; for each seed the candidate, counted from
1, that did, the best score, and what the run cost. ``first`` is the best score of the pool.

``settings`` are more settings for all runs, separated by spaces. Finished runs are kept in ``out``,
one JSON line each, and not run again, as in ``bench.search``.

Usage: python -m bench.pools [problem=circle_packing] [sources=shipped] [models=smollm2,mutation]
       [seeds=0,1,2,3,4] [candidates=100] [target=2.6359] [settings=...] [out=FILE]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import logging
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.comparison import Run
from bench.options import model_arguments, number, read_options
from bench.search import Job, make_runs, read_seeds
from engine.core import Direction, UserError
from engine.problem import read_direction, shipped

DEFAULTS = {
    "problem": "circle_packing",
    "sources": "shipped",
    "models": "smollm2,mutation",
    "seeds": "0,1,2,3,4",
    "candidates": "100",
    "target": "2.6359",
    "settings": "",
    "out": "runs/bench-pools.jsonl",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolJob(Job):
    """One run from a pool; its method is the model's preset."""

    sources: str
    target: float
    more: tuple[str, ...]

    @property
    def overrides(self) -> Sequence[str]:
        """The arguments of ``engine.run`` that make it."""
        return (
            *model_arguments({"model": self.method}),
            "islands.count=4",  # the default, for mutation too
            f"pool.sources=[{self.sources}]",
            f"budget.target={self.target!r}",
            *self.more,
        )


def jobs_of(options: Mapping[str, str]) -> list[PoolJob]:
    """Return the runs to be made, seed by seed.

    Raises:
        UserError: the problem, a model or a source is unknown, or a number is none.
    """
    if options["problem"] not in shipped():
        raise UserError(f"problem={options['problem']} is none of {', '.join(shipped())}")
    jobs = [
        PoolJob(
            problem=options["problem"],
            method=model,
            seed=seed,
            candidates=int(number(options, "candidates")),
            sources=options["sources"],
            target=number(options, "target"),
            more=tuple(options["settings"].split()),
        )
        for seed in read_seeds(options)
        for model in options["models"].split(",")
    ]
    for job in {job.method: job for job in jobs}.values():
        assert job.settings  # a bad override ends the benchmark before its first run
    return jobs


def reached(run: Run, target: float, direction: Direction) -> int | None:
    """Return the candidate, from 1, that was the first to reach the target; None if none did."""
    scores = ((count, score) for count, score in run["improvements"])
    return next((n for n, score in scores if not direction.better(target, than=score)), None)


def summary(by_seed: Mapping[int, Run], target: float, direction: Direction) -> dict[str, Any]:
    """Return the figures of one model's runs."""
    at = {seed: reached(run, target, direction) for seed, run in by_seed.items()}
    found = [count for count in at.values() if count is not None]
    return {
        "runs": len(by_seed),
        "reached": len(found),
        "median_candidates_of_those": statistics.median(found) if found else None,
        "first": next(iter(by_seed.values()))["initial_score"],
        "seeds": {
            seed: {
                "reached_at": at[seed],
                **{
                    key: run[key]
                    for key in (
                        *("best_score", "evaluated", "valid", "children"),
                        *("generated_tokens", "seconds"),
                    )
                },
            }
            for seed, run in by_seed.items()
        },
    }


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    jobs = jobs_of(options)
    direction, target = read_direction(shipped()[options["problem"]]), jobs[0].target
    out = Path(options["out"])
    out.parent.mkdir(parents=True, exist_ok=True)

    def say(run: Run) -> None:
        at = reached(run, target, direction)
        sys.stdout.write(f"{run['method']} seed {run['seed']}: {run['best_score']!r}, ")
        sys.stdout.write(f"target at candidate {at} of {run['evaluated']}, {run['seconds']} s\n")
        sys.stdout.flush()

    (by_model,) = make_runs(jobs, out=out, made=say).values()
    models = {model: summary(runs, target, direction) for model, runs in by_model.items()}
    sys.stdout.write(json.dumps({"options": options, "models": models}) + "\n")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.exit(f"error: {error}")
