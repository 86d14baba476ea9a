"""Question: how many candidates a second do outposts add, and what does each candidate cost?

Method: real runs with ``cluster=ray`` on this machine, one worker with one evaluator, and 0 or
more outposts (evaluators without a model), in turns. The outposts share out the machine's cores,
with an evaluator on each, and at least one each: ``evaluators`` counts them and the worker's. A
valid program waits 200 ms for its score and computes next to nothing, so that outposts that share
cores do not slow each other down. Candidates are those with a verdict in the last three quarters of
the run's seconds. ``worker_ms`` are the CPU milliseconds of the worker's process (loop, search, log
and Ray) for a candidate, ``outpost_ms`` those of an outpost's process.

Usage: python -m bench.outposts [outposts=0,1,2,4] [seconds=40] [rounds=3]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.experiments.results import machine
from bench.figures import spread
from bench.options import number, read_options, run_as_command, whole_number, whole_numbers
from bench.scale.check import verdicts
from engine.cluster.outposts.outpost import cores_of
from engine.cluster.places import island_folder

DEFAULTS = {"outposts": "0,1,2,4", "seconds": "40", "rounds": "3"}
_ISLANDS = 4
_WARM = 0.25  # share of a run that does not count
_TICKS = os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    seconds = number(options, "seconds")
    counts, rounds = whole_numbers(options, "outposts", least=0), whole_number(options, "rounds")
    found: dict[int, list[Mapping[str, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(rounds):
            for each in counts:
                found[each].append(_measured(each, seconds=seconds, runs=Path(scratch)))
                sys.stdout.write(f"{each} outposts: {found[each][-1]}\n")
    rows = [
        {"outposts": each}
        | {name: spread([one[name] for one in found[each]]) for name in found[each][0]}
        for each in counts
    ]
    result = {"rows": rows, "options": options, "machine": machine()}
    sys.stdout.write(json.dumps(result) + "\n")


def _measured(outposts: int, *, seconds: float, runs: Path) -> Mapping[str, float]:
    name = f"run-{time.time_ns()}"
    command = [
        *(sys.executable, "-m", "engine.run", "problem.path=bench/scale/slow_problem"),
        *("model=mutation", "fill=none", "cluster=ray", f"cluster.outposts={outposts}"),
        *(f"islands.count={_ISLANDS}", "evaluation.workers=1", "budget.candidates=null"),
        *(f"budget.seconds={seconds}", f"runs={runs}", f"name={name}"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    spent: dict[tuple[str, int], float] = {}
    while process.poll() is None:
        spent |= _cpu_seconds(process.pid)
        time.sleep(0.5)
    if process.returncode:
        raise RuntimeError(f"the run ended with {process.returncode}")
    times = verdicts([island_folder(runs / name, number_) for number_ in range(_ISLANDS)])
    counted = sum(_WARM * seconds <= each <= seconds for each in times)
    of_worker = [value for (kind, _), value in spent.items() if kind == "ray::Worker"]
    of_outposts = [value for (kind, _), value in spent.items() if kind == "ray::Outpost"]
    cores = sorted(os.sched_getaffinity(0))
    away = sum(len(cores_of(each, of=outposts, cores=cores)) for each in range(outposts))
    there = len(times) * away / (away + 1)  # of those evaluated, by outposts
    rate = counted / ((1 - _WARM) * seconds)
    return {
        "evaluators": away + 1,
        "candidates_a_second": rate,
        "of_each_evaluator": rate / (away + 1),
        "worker_ms": 1e3 * sum(of_worker) / len(times),
        "outpost_ms": 1e3 * sum(of_outposts) / there if there else 0.0,
    }


def _cpu_seconds(driver: int) -> Mapping[tuple[str, int], float]:
    """Return the CPU seconds of the actors below a process, by what they are and their id."""
    parents: dict[int, int] = {}
    found: dict[tuple[str, int], float] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            name = (entry / "cmdline").read_bytes().split(b"\0")[0].decode()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(entry.name)] = int(fields[1])
        kind = name.partition(".")[0].partition("(")[0]
        found[kind, int(entry.name)] = (int(fields[11]) + int(fields[12])) / _TICKS

    def is_below(process: int) -> bool:
        while process > 1 and process != driver:
            process = parents.get(process, 0)
        return process == driver

    return {key: value for key, value in found.items() if is_below(key[1])}


if __name__ == "__main__":
    run_as_command(main)
