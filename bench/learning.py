"""Question: does a model that learns while it searches find more, and what does it learn?

Method: one run for each problem, seed and arm, interleaved seed by seed, each of ``seconds`` wall
seconds in a process of its own, as ``python -m engine.run`` makes it. The arms are ``ARMS``: no
learning, the methods, the full adapter, and ``mutation``, which asks no model. None has fills:
their programs would be in the best scores, and no model wrote them. Then the frozen probe
(``engine.probe``) of each run that learned, on the parents of the run without learning that has the
next seed, which no trained model has seen.

Reported for each problem and arm, and over all problems:

- ``at_candidates``: the best score after as many candidates as the shortest run of the problem and
  seed has; ``at_seconds``: at the end. The gain over the arm ``none`` with the same seed is in
  shares of the way from the initial score to the problem's target, above 0 for better: its mean,
  95 % t interval, Wilcoxon's signed-rank test, and its p-value after Holm's correction for the
  number of arms;
- children, candidates, new valid and improving children for each 100 children, the hit rate,
  updates, how many were rolled back, the trainer's seconds for each wall second, milliseconds of a
  swap;
- ``probe``: unique valid and improving children of the frozen prompts, with the adapter against
  the model itself: sums, ratio, and its 95 % interval from a bootstrap over the prompts of all
  seeds.

Runs stand in the folder ``out`` and are not made again with the same settings, so the benchmark may
be cut short and started again; a run that was cut short goes on.

Usage: python -m bench.learning [problems=signal,circle_packing,first_autocorr] [seeds=0,1,2,3,4]
       [arms=none,phase_adaptive,mutation] [seconds=120] [probe=8x64] [model=smollm2]
       [settings=...] [out=FOLDER]
``settings`` are more settings for the runs with a model, separated by spaces; ``probe=0`` leaves
the probe out. The last line printed is JSON.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import holm, paired
from bench.options import model_arguments, number, read_options, run_as_command
from engine.core import INITIAL, Direction, Problem, UserError
from engine.probe import PROBE, compared
from engine.problem import load_problem, shipped
from engine.report.analysis import RunRecord, read_runs
from engine.report.analysis.figures import median_interval

DEFAULTS = {
    "problems": "signal,circle_packing,first_autocorr",
    "seeds": "0,1,2,3,4",
    "arms": "none,phase_adaptive,mutation",
    "seconds": "120",
    "probe": "8x64",
    "model": "smollm2",
    "settings": "",
    "out": "runs/bench-learning",
}
ARMS: Mapping[str, Sequence[str]] = {
    "none": ("learning=none",),
    "mean_baseline": ("learning=mean_baseline",),
    "grpo": ("learning=grpo",),
    "entropic": ("learning=entropic",),
    "max_at_k": ("learning=max_at_k",),
    "phase_adaptive": ("learning=phase_adaptive",),
    "expert": ("learning=expert",),
    "full": ("learning=phase_adaptive", "learning.adapter=full"),
    "mutation": ("model=mutation", "islands.count=4"),
}
BASELINE = "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One run that is to be made."""

    problem: str
    arm: str
    seed: int
    seconds: float
    model: Sequence[str]
    settings: Sequence[str]
    out: Path

    @property
    def command(self) -> Sequence[str]:
        """The arguments of ``engine.run`` that make it."""
        return (f"runs={self.out}", f"name={self.folder.name}", *self._settings)

    @property
    def folder(self) -> Path:
        """The run's. Runs of other settings have others, and are not taken for this one."""
        digest = hashlib.sha256("\n".join(self._settings).encode()).hexdigest()
        return self.out / f"{self.problem}-{self.arm}-{self.seed}-{digest[:8]}"

    @property
    def _settings(self) -> Sequence[str]:
        """All that decides what it does; the arm ``mutation`` has its own model."""
        asks = () if self.arm == "mutation" else (*self.model, *self.settings)
        return (
            *(f"problem={self.problem}", f"seed={self.seed}"),
            *(f"budget.seconds={self.seconds}", "budget.candidates=null", "fill=none"),
            *ARMS[self.arm],
            *asks,
        )

    def make(self) -> None:
        """Make the run, go on with it, or leave it as it is if it is over."""
        if (self.folder / "summary.json").exists():
            return
        resumed = self.folder.exists()
        _run("engine.run", *([f"resume={self.folder}"] if resumed else self.command))

    def probe(self, count: int, children: int, *, of: Path) -> None:
        """Probe the run's adapter on the parents of another run, unless that was done."""
        if not (self.folder / PROBE).exists():
            options = (f"of={of}", f"prompts={count}", f"children={children}")
            _run("engine.probe", str(self.folder), *options)

    @property
    def summary(self) -> Mapping[str, Any]:
        """What the run's ``summary.json`` says."""
        found: Mapping[str, Any] = json.loads((self.folder / "summary.json").read_text())
        return found


def _run(module: str, *arguments: str) -> None:
    sys.stderr.write(f"{module} {' '.join(arguments)}\n")
    subprocess.run([sys.executable, "-m", module, *arguments], check=True, stdout=sys.stderr)


def jobs_of(options: Mapping[str, str]) -> list[Job]:
    """Return the runs to be made, seed by seed.

    Raises:
        UserError: a problem or an arm is unknown, or a number is none.
    """
    for key, known in (("problems", shipped()), ("arms", ARMS)):
        for name in options[key].split(","):
            if name not in known:
                raise UserError(f"{key}: {name} is none of {', '.join(known)}")
    return [
        Job(
            problem=problem,
            arm=arm,
            seed=int(seed),
            seconds=number(options, "seconds"),
            model=model_arguments(options),
            settings=options["settings"].split(),
            out=Path(options["out"]),
        )
        for seed in options["seeds"].split(",")
        for problem in options["problems"].split(",")
        for arm in options["arms"].split(",")
    ]


def probed(jobs: Sequence[Job], size: str) -> None:
    """Probe the runs that learned; ``size`` is prompts x children.

    Raises:
        UserError: there is no run without learning to take the parents from.
    """
    count, children = map(int, size.split("x"))
    bases = {(job.problem, job.seed): job.folder for job in jobs if job.arm == BASELINE}
    seeds = sorted({job.seed for job in jobs})
    for job in jobs:
        if (job.summary["learning"] or {}).get("version"):
            following = seeds[(seeds.index(job.seed) + 1) % len(seeds)]
            if (job.problem, following) not in bases:
                raise UserError(f"arms: the probe needs arm {BASELINE}, or give probe=0")
            job.probe(count, children, of=bases[job.problem, following])


def best_after(run: RunRecord, *, candidates: float) -> float:
    """Return a run's best score among its first candidates."""
    first = run.history.verdicts[INITIAL].score
    reached = [
        score for name, score in run.bests.items() if run.totals[name]["candidates"] <= candidates
    ]
    assert first is not None
    return reached[-1] if reached else first


def compared_arms(problem: Problem, runs: Mapping[str, Mapping[int, RunRecord]]) -> dict[str, Any]:
    """Return each arm's best scores, and the gains over the baseline by seed."""
    sign = 1.0 if problem.direction is Direction.MAXIMISE else -1.0
    found: dict[str, Any] = {arm: {} for arm in runs}
    for key in ("at_candidates", "at_seconds"):
        scores: dict[str, dict[int, float]] = {arm: {} for arm in runs}
        for seed in sorted(set.intersection(*(set(each) for each in runs.values()))):
            least = min(each[seed].end["candidates"] for each in runs.values())
            for arm, by_seed in runs.items():
                limit = least if key == "at_candidates" else float("inf")
                scores[arm][seed] = best_after(by_seed[seed], candidates=limit)
        for arm, by_seed in scores.items():
            way = abs(_way(problem, runs[arm]))
            gains = {
                seed: sign * (score - scores[BASELINE][seed]) / way
                for seed, score in by_seed.items()
                if arm != BASELINE and BASELINE in scores
            }
            found[arm][key] = {
                "best_score": median_interval(list(by_seed.values())),
                "scores": by_seed,
                "gains": gains,
            }
    return found


def _way(problem: Problem, runs: Mapping[int, RunRecord]) -> float:
    """Return the distance from the initial score to the problem's target."""
    first = next(iter(runs.values())).history.verdicts[INITIAL].score
    assert problem.target is not None and first is not None
    return problem.target - first


def rates(jobs: Sequence[Job], runs: Sequence[RunRecord]) -> dict[str, Any]:
    """Return the medians of one arm's runs."""
    summaries = [job.summary for job in jobs]
    learned = [each["learning"] for each in summaries if each["learning"]]

    def median(values: Sequence[float | None]) -> float | None:
        numbers = [each for each in values if each is not None]
        return statistics.median(numbers) if numbers else None

    return {
        "runs": len(jobs),
        "children": median([each["children"] for each in summaries]),
        "candidates": median([each["candidates"] for each in summaries]),
        "new_valid_per_100": median(
            [100 * sum(t.score is not None for t in run.trials) / len(run.trials) for run in runs]
        ),
        "improving_per_100": median(
            [100 * sum(t.is_better for t in run.trials) / len(run.trials) for run in runs]
        ),
        "hit_rate": median([each["hit_rate"] for each in summaries]),
        "updates": median([each["updates"] for each in learned]),
        "rolled_back": sum(each["rolled_back"] for each in learned),
        "trainer_share": median(
            [
                each["learning"]["seconds"] / each["wall_seconds"]
                for each in summaries
                if each["learning"]
            ]
        ),
        "swap_ms": median([each["swap_ms"] for each in learned]),
    }


def tested(gains: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return the paired tests of each arm's gains, corrected for their number."""
    tests = {arm: paired(values) for arm, values in gains.items() if len(values) > 1}
    p_values = {arm: test["wilcoxon_p"] for arm, test in tests.items()}
    corrected = holm({arm: 1.0 if p is None else p for arm, p in p_values.items()})
    return {arm: {**test, "holm_p": corrected[arm]} for arm, test in tests.items()}


def result_of(jobs: Sequence[Job]) -> dict[str, Any]:
    """Return the figures of runs that were made."""
    problems: dict[str, Any] = {}
    gains: dict[str, dict[str, list[float]]] = {"at_candidates": {}, "at_seconds": {}}
    for name in dict.fromkeys(job.problem for job in jobs):
        own = [job for job in jobs if job.problem == name]
        records = dict(
            zip([job.folder for job in own], read_runs([j.folder for j in own]), strict=True)
        )
        arms = {arm: [job for job in own if job.arm == arm] for arm in {j.arm: 0 for j in own}}
        by_seed = {
            arm: {job.seed: records[job.folder] for job in each} for arm, each in arms.items()
        }
        found = compared_arms(load_problem(shipped()[name]), by_seed)
        for arm, each in arms.items():
            found[arm] |= rates(each, [records[job.folder] for job in each])
            rows = [row for job in each for row in _probe_rows(job)]
            found[arm]["probe"] = compared(rows) if rows else None
            for key, values in gains.items():
                values.setdefault(arm, []).extend(found[arm][key]["gains"].values())
        problems[name] = found
    return {
        "problems": problems,
        "over_problems": {key: tested(values) for key, values in gains.items()},
    }


def _probe_rows(job: Job) -> list[Any]:
    path = job.folder / PROBE
    return list(json.loads(path.read_text())["prompts"]) if path.exists() else []


def main(arguments: list[str]) -> None:
    """Make the runs and print what they come to."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    jobs = jobs_of(options)
    for job in jobs:
        job.make()
    if options["probe"] != "0":
        probed(jobs, options["probe"])
    sys.stdout.write(json.dumps({"options": options, **result_of(jobs)}) + "\n")


if __name__ == "__main__":
    run_as_command(main)
