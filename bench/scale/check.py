"""Question: does the simulation tell how many candidates an hour real workers make?

Method: the costs are measured (``bench.scale.measure``), then real runs with ``cluster=ray`` are
made on this machine, the numbers of workers in turns, and simulated ones of the same size. Real
workers have one evaluator each, on the problem that waits 200 ms for each program: the machine's
cores are shared, and a problem that computes would measure them. Candidates are those with a
verdict in the last three quarters of the run's seconds.

Usage: python -m bench.scale.check [workers=1,2,3] [islands=2] [seconds=60] [rounds=3] [k=8]
       [model=mutation] [problem=bench/scale/slow_problem] [store=postgresql://…] [calls=40]
The last line printed is JSON: measured and predicted candidates an hour, and their ratio.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path

from bench.experiments.results import machine
from bench.figures import spread
from bench.options import (
    model_arguments,
    number,
    read_options,
    run_as_command,
    whole_number,
    whole_numbers,
)
from bench.scale.costs import Cluster
from bench.scale.measure import measured
from bench.scale.simulation import simulated
from engine.cluster.places import island_folder
from engine.core import Child, Verdict
from engine.store import read_log

DEFAULTS = {
    "workers": "1,2,3",
    "islands": "2",
    "seconds": "60",
    "rounds": "3",
    "k": "8",
    "model": "mutation",
    "problem": "bench/scale/slow_problem",
    "store": "",
    "calls": "40",
}
_WARM = 0.25  # share of a run that does not count


def main(arguments: Sequence[str]) -> None:
    """Measure, simulate and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    seconds, islands = number(options, "seconds"), whole_number(options, "islands")
    workers, rounds = whole_numbers(options, "workers"), whole_number(options, "rounds")
    with tempfile.TemporaryDirectory() as scratch:
        costs, candidates = measured(
            options, calls=whole_number(options, "calls"), scratch=Path(scratch)
        )
        sys.stdout.write(f"{costs}, {candidates:.2f} candidates a call\n")
        real: dict[int, list[float]] = {each: [] for each in workers}
        for _ in range(rounds):
            for each in workers:
                real[each].append(
                    _an_hour(options, workers=each, islands=islands, scratch=Path(scratch))
                )
                sys.stdout.write(f"{each} workers: {real[each][-1]:.0f} candidates an hour\n")
    rows = []
    for each in workers:
        cluster = Cluster(
            workers=each, islands=islands, evaluators=1, candidates=candidates, every=10, store=16
        )
        found = simulated(costs, cluster, seeds=5, warm=seconds, seconds=10 * seconds)
        rows.append(
            {
                "workers": each,
                "measured": spread(real[each], digits=1),
                "predicted": found["candidates_an_hour"],
                "predicted_over_measured": round(
                    found["candidates_an_hour"] / spread(real[each])["median"], 3
                ),
            }
        )
    result = {"costs": asdict(costs), "rows": rows, "options": options, "machine": machine()}
    sys.stdout.write(json.dumps(result) + "\n")


def _an_hour(options: dict[str, str], *, workers: int, islands: int, scratch: Path) -> float:
    """Make a real run; return its candidates an hour."""
    name, seconds = f"run-{time.time_ns()}", number(options, "seconds")
    where = options["problem"]
    command = [
        *(sys.executable, "-m", "engine.run", *model_arguments(options), "fill=none"),
        *(f"problem.path={where}" if "/" in where else f"problem={where}", f"runs={scratch}"),
        *(f"name={name}", "cluster=ray", f"cluster.workers={workers}", f"search.k={options['k']}"),
        *(f"islands.count={workers * islands}", "evaluation.workers=1", "budget.candidates=null"),
        f"budget.seconds={seconds}",
        *[f"store={options['store']}"] * bool(options["store"]),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    times = verdicts([island_folder(scratch / name, each) for each in range(workers * islands)])
    counted = sum(_WARM * seconds <= each <= seconds for each in times)
    return 3600 * counted / ((1 - _WARM) * seconds)


def verdicts(folders: Sequence[Path]) -> list[float]:
    """Return when the islands' children had their verdicts, in wall seconds of their islands."""
    times = []
    for folder in folders:
        log = [*read_log(folder)]
        own = {each.event.id for each in log if isinstance(each.event, Child)}
        lasted = {each.session: each.elapsed for each in log}
        began = dict(zip(lasted, accumulate(lasted.values(), initial=0.0), strict=False))
        times += [
            began[each.session] + each.elapsed
            for each in log
            if isinstance(each.event, Verdict) and each.event.candidate in own
        ]
    return times


if __name__ == "__main__":
    run_as_command(main)
