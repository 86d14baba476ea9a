"""Question: what is each search method worth, on the same budget, and which beat none at all?

Method: real runs with one loaded model, one for each problem, seed and method (``bench.methods``),
interleaved seed by seed, each of the same number of evaluated candidates and from an empty prefix
cache. ``mutation`` asks no model: it is the null hypothesis that the others have to beat.

Reported for each problem and method:

- the median of the runs' best scores, with a distribution-free interval and its confidence
  (``engine.report.analysis.figures.median_interval``; of five seeds, their range has 0.94);
- the mean over the seeds of the method's rank among all methods, 1 for the best, ties shared;
- ``better_than_baseline``: the best scores' differences from those of ``one-island``, the plainest
  search, with the same seed, above 0 for better: their mean, its 95 % t interval, Wilcoxon's
  signed-rank test, and its p-value after Holm's correction for the number of methods. Five seeds
  can't give a p below 0.0625;
- candidates to the first improvement on the initial program: the median over the runs, those that
  had none counted as the whole budget and one more, and how many had one;
- medians of seconds and generated tokens (of ``mutation``: characters, at no model's cost), and
  the share of the candidates that were valid.

``over_problems`` compares ranks, which problems share, over all problems and seeds: how much better
the method's rank is than that of ``one-island``, tested and corrected likewise. Ranks are among the
methods of the call, over the seeds that all of them have.

Finished runs are kept in ``out``, one JSON line each, and not run again, unless the method's
overrides are others now; so the benchmark may be cut short and started again.

Usage: python -m bench.search [problems=signal,circle_packing,first_autocorr] [candidates=200]
       [methods=one-island,default,mutation,...] [seeds=0,1,2,3,4] [model=smollm2]
       [out=FILE]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.comparison import BySeed, Run, compared, table
from bench.methods import METHODS
from bench.options import model_arguments, number, read_options
from bench.runs import TemporaryRun, syntax_workers, temporary_run
from engine import config
from engine.core import Direction, Problem, UserError
from engine.evaluation import EvaluatorPool, evaluator_cores, model_cores, open_pool
from engine.inference import LanguageModel, prepare
from engine.parts import model_loader
from engine.problem import load_problem, shipped
from engine.settings import RunSettings
from engine.store import Verdict

DEFAULTS = {
    "model": "smollm2",
    "problems": "signal,circle_packing,first_autocorr",
    "methods": ",".join(METHODS),
    "seeds": "0,1,2,3,4",
    "candidates": "200",
    "out": "runs/bench-search.jsonl",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One run that is to be made."""

    problem: str
    method: str
    seed: int
    candidates: int
    model: str = DEFAULTS["model"]

    @property
    def overrides(self) -> Sequence[str]:
        """The arguments of ``engine.run`` that make its method, and its model if that is another.

        A method that names a model keeps it.
        """
        own = METHODS[self.method]
        if self.model == DEFAULTS["model"] or any(each.startswith("model=") for each in own):
            return own
        return (*model_arguments({"model": self.model}), *own)

    @property
    def key(self) -> dict[str, Any]:
        """What tells its result from others'."""
        return {
            "problem": self.problem,
            "method": self.method,
            "overrides": list(self.overrides),
            "seed": self.seed,
            "candidates": self.candidates,
        }

    @property
    def settings(self) -> RunSettings:
        """The run's settings; only the number of candidates ends it."""
        return config.resolve(
            [
                *(f"problem={self.problem}", f"seed={self.seed}"),
                *(f"budget.candidates={self.candidates}", "budget.seconds=null"),
                *self.overrides,
            ]
        )


class Models:
    """The models of all runs, each loaded when it is first asked for; a context manager."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._loaded: dict[str, tuple[RunSettings, LanguageModel]] = {}

    def of(self, settings: RunSettings) -> LanguageModel:
        """Return a run's model, its prefix cache empty.

        Raises:
            UserError: another model of its kind is loaded, and there is room for one.
        """
        kind = settings.model.kind
        if kind not in self._loaded:
            load = self._stack.enter_context(model_loader(settings, syntax=syntax_workers()))
            self._loaded[kind] = settings, self._stack.enter_context(closing(load()))
        first, model = self._loaded[kind]
        if (first.model, first.cache) != (settings.model, settings.cache):
            raise UserError("all methods with a language model have to share one, as configured")
        model.forget()
        return model

    def __enter__(self) -> Models:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()


def figures(run: TemporaryRun, *, seconds: float) -> Run:
    """Return what is kept of a run."""
    history = run.history
    assert history.best is not None  # the initial program's, at least
    steps = improvements(run, history.direction)
    return {
        "best_score": history.best.score,
        "initial_score": first_score(run, history.direction),
        "improvements": steps,
        "first_improvement": steps[0][0] if steps else None,
        "evaluated": history.evaluated,
        "valid": history.valid,
        "children": len(history.children),
        "seconds": round(seconds, 2),
        "generated_tokens": history.generated_tokens,
    }


def first_score(run: TemporaryRun, direction: Direction) -> float:
    """Return the best score that a run began with: the initial program's, or one of its pool."""
    scores = [run.history.verdicts[name].score for name in run.history.first]
    valid = [score for score in scores if score is not None]
    return max(valid) if direction is Direction.MAXIMISE else min(valid)


def improvements(run: TemporaryRun, direction: Direction) -> list[tuple[int, float]]:
    """Return each new best score with the number of the candidate, from 1, that brought it.

    A pool's programs are no candidates; what is better than the best of them is new.
    """
    found: list[tuple[int, float]] = []
    best = first_score(run, direction)
    verdicts = [event for event in run.events if isinstance(event, Verdict)]
    scores = [each.score for each in verdicts if each.candidate not in run.history.first]
    for count, score in enumerate(scores, start=1):
        if score is not None and direction.better(score, than=best):
            best = score
            found.append((count, score))
    return found


def make_runs(
    jobs: Sequence[Job], *, out: Path, made: Callable[[Run], object]
) -> dict[str, dict[str, BySeed]]:
    """Return the results of all jobs, making those that ``out`` does not have yet.

    Args:
        jobs: in their order; those of a problem follow each other.
        out: where results are kept, a JSON line each.
        made: told of each result, kept or new.
    """
    cores = evaluator_cores(jobs[0].settings.evaluation.workers)  # before they are given away
    os.sched_setaffinity(0, model_cores(cores))
    model = jobs[0].settings.model
    prepare(threads=model.threads, kv_cache_gb=model.kv_cache_gb)
    lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    kept = [json.loads(line) for line in lines]
    results: dict[str, dict[str, BySeed]] = {}
    with Models() as models:
        for problem in dict.fromkeys(job.problem for job in jobs):
            own = [job for job in jobs if job.problem == problem]
            missing = [job for job in own if _found(job, kept) is None]
            kept += _made(problem, missing, models, cores=cores, out=out, made=made)
            by_method = results.setdefault(problem, {})
            for job in own:
                run = _found(job, kept)
                assert run is not None
                by_method.setdefault(job.method, {})[job.seed] = run
    return results


def _made(
    name: str,
    jobs: Sequence[Job],
    models: Models,
    *,
    cores: Sequence[int],
    out: Path,
    made: Callable[[Run], object],
) -> list[Run]:
    """Make the missing runs of a problem, each kept as soon as it is done."""
    if not jobs:
        return []
    problem, results = load_problem(Path(shipped()[name])), []
    with open_pool(problem=problem, workers=len(cores), cores=cores) as pool:
        pool.check_walls(strict=False)  # waits until it is warm
        for job in jobs:
            run = {**job.key, **one_run(job.settings, problem, models.of(job.settings), pool)}
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(run) + "\n")
            made(run)
            results.append(run)
    return results


def one_run(
    settings: RunSettings, problem: Problem, model: LanguageModel, pool: EvaluatorPool
) -> Run:
    """Return the figures of one run."""
    began = time.monotonic()
    run = temporary_run(
        settings=settings, problem=problem, model=model, pool=pool, stopped=lambda _: False
    )
    return figures(run, seconds=time.monotonic() - began)


def _found(job: Job, kept: Sequence[Run]) -> Run | None:
    key = job.key
    return next((run for run in kept if all(run.get(k) == v for k, v in key.items())), None)


def read_seeds(options: Mapping[str, str]) -> list[int]:
    """Return the option ``seeds``.

    Raises:
        UserError: one of them is no whole number.
    """
    try:
        return [int(seed) for seed in options["seeds"].split(",")]
    except ValueError as error:
        raise UserError(f"seeds={options['seeds']} are no whole numbers") from error


def jobs_of(options: Mapping[str, str]) -> list[Job]:
    """Return the runs to be made, seed by seed.

    Raises:
        UserError: a problem or a method is unknown, or a seed or the budget is no number.
    """
    candidates = int(number(options, "candidates"))
    for key, known in (("problems", sorted(shipped())), ("methods", list(METHODS))):
        unknown = [each for each in options[key].split(",") if each not in known]
        if unknown:
            raise UserError(f"{key}={unknown[0]} is none of {', '.join(known)}")
    jobs = [
        Job(
            problem=problem,
            method=method,
            model=options["model"],
            seed=seed,
            candidates=candidates,
        )
        for problem in options["problems"].split(",")
        for seed in read_seeds(options)
        for method in options["methods"].split(",")
    ]
    for job in {job.method: job for job in jobs}.values():
        assert job.settings  # a bad override ends the benchmark before its first run
    return jobs


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    jobs = jobs_of(options)
    out = Path(options["out"])
    out.parent.mkdir(parents=True, exist_ok=True)

    def say(run: Run) -> None:
        shown = {key: value for key, value in run.items() if key != "improvements"}
        sys.stdout.write(f"{shown}\n")
        sys.stdout.flush()

    runs = make_runs(jobs, out=out, made=say)
    problems = {name: load_problem(Path(shipped()[name])) for name in runs}
    result = compared(runs, {name: each.direction for name, each in problems.items()})
    sys.stdout.write(table(result) + "\n")
    overrides = {method: METHODS[method] for method in options["methods"].split(",")}
    sys.stdout.write(json.dumps({"options": options, "overrides": overrides, **result}) + "\n")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.exit(f"error: {error}")
