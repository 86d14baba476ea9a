"""Question: those of ``table.yaml``, one for each experiment. What is each method worth?

Method: a run of the real engine for each arm, problem and seed of an experiment, ended by the same
wall seconds, candidates or evaluations, each on cores of its own, the arms in turns. A lane of
cores has one process, whose runs share a loaded model and begin with an empty prefix cache.

Results are kept in ``out``/NAME: a line in ``results.jsonl`` for each run that reached its limit,
and the runs' folders. A run with a line is not made again, unless its overrides are others now; one
that was cut off is. So an experiment may be stopped, and started again with the same command.

Then ``results`` gets NAME.json, of all runs that there are of the experiment: see
``bench.experiments.comparison``. ``python -m bench.experiments.page`` makes ``docs/experiments.md``
of those. NAME.jsonl beside it has the runs' lines: as ``out``/NAME/results.jsonl they let another
machine go on where this one stopped. With ``amount``, ``model`` or ``cores`` it is another
experiment than the table's, whose results must not take their place: nothing is written then,
unless ``results`` is given.

Usage: python -m bench.experiments name=k[,stale,...] [out=runs/experiments] [problems=...]
       [arms=...] [seeds=0,1,...] [model=smollm2] [amount=N] [cores=N]
       [at_once=N] [make=true] [results=bench/results/experiments]
       [table=bench/experiments/table.yaml]
cores=N      for each run, in place of the table's
at_once=N    runs at a time; as many as there are cores for
model=NAME   in place of the embedded one: a preset, a folder or a hub id
amount=N     of the budget, in place of the table's
results=     write nothing
make=false   only compare what there is
The last line printed is JSON: how many runs there are of each experiment, and the runs that failed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.experiments.comparison import compared
from bench.experiments.lanes import make
from bench.experiments.results import Kept, Result
from bench.experiments.table import (
    TABLE,
    Experiment,
    Job,
    chosen,
    narrowed,
    read_table,
)
from bench.options import read_options, run_as_command, whole_number
from engine.core import UserError
from engine.durable import write_whole
from engine.interrupt import terminable

RESULTS = Path("bench/results/experiments")
DEFAULTS = {
    "name": "",
    "out": "runs/experiments",
    "problems": "",
    "arms": "",
    "seeds": "",
    "amount": "",
    "model": "",
    "cores": "",
    "at_once": "",
    "results": str(RESULTS),
    "make": "true",
    "table": str(TABLE),
}
_OWN = ("amount", "model", "cores")  # options that make another experiment than the table's


def run(whole: Experiment, options: dict[str, str]) -> dict[str, Any]:
    """Make the runs that an experiment lacks; return how it stands.

    Raises:
        UserError: an option names what the experiment has not, an override is wrong, or there are
            fewer cores than a run needs.
    """
    experiment = narrowed(whole, options)
    kept = Kept(Path(options["out"]).resolve() / experiment.name)
    jobs = experiment.jobs
    for job in {job.arm: job for job in jobs}.values():
        job.settings(kept.folder)  # a bad override ends the experiment before its first run
    missing = [job for job in jobs if kept.found(job) is None]
    failed: list[str] = []

    def made(job: Job, answer: Result) -> None:
        if "error" in answer:
            failed.append(f"{job.name}: {answer['error']}")
            sys.stderr.write(f"{failed[-1]}\n")
            return
        kept.add(answer)
        left = len(jobs) - len(kept.of(jobs))
        sys.stdout.write(
            f"{experiment.name} {job.problem} {job.arm} seed {job.seed}: {answer['best_score']!r}, "
            f"{answer['candidates']} candidates in {answer['seconds']:.0f} s, {left} runs left\n"
        )
        sys.stdout.flush()

    cores = sorted(os.sched_getaffinity(0))
    if options["at_once"]:
        cores = cores[: whole_number(options, "at_once") * experiment.cores]
    if options["make"] == "true":
        make(missing, out=kept.folder, cores=cores, made=made)
    everything = {"problems": "", "arms": "", "seeds": ""}
    whole = narrowed(whole, {**options, **everything})
    if options["results"] and (results := kept.of(whole.jobs)):
        write(whole, results, folder=Path(options["results"]))
    return {"runs": len(kept.of(jobs)), "of": len(jobs), "failed": failed}


def write(experiment: Experiment, results: Sequence[Result], *, folder: Path) -> None:
    """Write what an experiment has found so far: its figures, and the curves behind them."""
    folder.mkdir(parents=True, exist_ok=True)
    keys = ("problem", "arm", "seed", "seconds", "candidates", "generated_tokens", "best_score")
    curves = [{**{key: run[key] for key in keys}, "curve": run["curve"]} for run in results]
    found = {**compared(experiment, results), "runs": curves}
    write_whole(folder / f"{experiment.name}.json", json.dumps(found, allow_nan=False) + "\n")
    lines = "".join(json.dumps(run, allow_nan=False) + "\n" for run in results)
    write_whole(folder / f"{experiment.name}.jsonl", lines)


def main(arguments: list[str]) -> int:
    """Run and compare; return the exit code."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    if any(options[key] for key in _OWN):
        options = read_options(arguments, {**DEFAULTS, "results": ""}, usage=__doc__ or "")
    table = read_table(Path(options["table"]))
    if not options["name"]:
        raise UserError(f"give name=NAME, one or several of {', '.join(table)}")
    experiments = chosen(options["name"].split(","), table)
    stand: dict[str, Any] = {}
    with terminable():
        for whole in experiments:
            stand[whole.name] = run(whole, options)
    sys.stdout.write(json.dumps(stand) + "\n")
    return 1 if any(each["failed"] for each in stand.values()) else 0


if __name__ == "__main__":
    run_as_command(main)
