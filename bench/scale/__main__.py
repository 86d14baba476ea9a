"""Question: where do candidates an hour stop growing with GPUs, and what breaks first?

Method: a simulation (``bench/scale/simulation.py``) with the costs in ``costs``, a JSON file with
the fields of `Costs`; single ones are overridden by ``set``, as in ``set=call:4,evaluation:0.2``.
``python -m bench.scale.measure`` measures them, ``python -m bench.scale.check`` compares the
simulation with real runs, and ``python -m bench.scale.page`` makes docs/scale.md of both. A run is
``iterations`` of an island long, waiting for the store included, and a third as many before it is
counted.

For each number of workers: candidates an hour; the shares of the time in which the store works,
islands wait for it, islands wait for their neighbours' migrants, and the driver is at work. Then,
at ``at`` workers, what migration's interval costs, with workers of unequal speed (``spread``).

What deaths cost, where each of these workers lives ``life`` hours in the mean, is computed: a
simulated run is too short to see one.

Usage: python -m bench.scale costs=FILE [set=NAME:SECONDS,...] [workers=1,4,16,64,256,1024,4096]
       [every=0,1,5,10,50] [at=64] [spread=0.2] [life=24] [seeds=3] [iterations=30]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

from bench.options import number, read_options, run_as_command, whole_number, whole_numbers
from bench.scale.costs import Cluster, Costs
from bench.scale.simulation import simulated
from engine.core import UserError

DEFAULTS = {
    "costs": "",
    "set": "",
    "workers": "1,4,16,64,256,1024,4096",
    "every": "0,1,5,10,50",
    "at": "64",
    "spread": "0.2",
    "life": "24",
    "seeds": "3",
    "iterations": "30",
}


def main(arguments: Sequence[str]) -> None:
    """Simulate and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    costs, candidates = read_costs(options["costs"], options["set"])
    usual = Cluster(workers=1, candidates=candidates)
    iterations, seeds = number(options, "iterations"), whole_number(options, "seeds")
    workers, intervals = whole_numbers(options, "workers"), whole_numbers(options, "every", least=0)
    at, spread = whole_number(options, "at"), number(options, "spread")
    life = number(options, "life")

    def shown(cluster: Cluster) -> dict[str, object]:
        seconds = iterations * iteration_seconds(costs, cluster)
        found = simulated(costs, cluster, seeds=seeds, warm=seconds / 3, seconds=seconds)
        sys.stdout.write(f"{found}\n")
        return found

    growth = [shown(replace(usual, workers=each)) for each in workers]
    uneven = replace(usual, workers=at, spread=spread)
    migration = [{"every": each, **shown(replace(uneven, every=each))} for each in intervals]
    result = {
        "costs": asdict(costs),
        "growth": growth,
        "migration": migration,
        "deaths": deaths(costs, workers=at, life=life),
        "options": options,
    }
    sys.stdout.write(json.dumps(result) + "\n")


def iteration_seconds(costs: Costs, cluster: Cluster) -> float:
    """Return about how long an island's iteration takes.

    That is what its worker needs, or what the store needs for an iteration of every island where
    that is longer.
    """
    others = cluster.islands - 1
    evaluations = cluster.candidates * costs.evaluation / cluster.evaluators
    worker = costs.call + others * costs.beside + cluster.islands * (costs.loop + evaluations)
    reads = (1 + 2 * cluster.migrants) / cluster.every if cluster.every else 0.0
    at_store = costs.commit * costs.commits + cluster.candidates * costs.lookup + costs.read * reads
    return max(worker, cluster.workers * cluster.islands * at_store / cluster.store)


def deaths(costs: Costs, *, workers: int, life: float) -> dict[str, float]:
    """Return the seconds without a worker that died, and the share of the time that these are.

    The driver finds a dead worker at its next look; then another one loads its model.

    Args:
        costs: of the steps.
        workers: that the driver looks at.
        life: mean hours until a worker dies.
    """
    seconds = costs.pause + costs.report * workers + costs.start
    return {"seconds": round(seconds, 3), "share": round(seconds / (3600 * life), 6)}


def read_costs(file: str, override: str) -> tuple[Costs, float]:
    """Return the costs of a file, some of them overridden, and the candidates of a call.

    Raises:
        UserError: no file is named, there is none, or no such cost.
    """
    if not file:
        raise UserError("costs= is missing; give costs=FILE, which bench.scale.measure prints")
    names = {each.name for each in fields(Costs)}
    try:
        values = json.loads(Path(file).read_text())
        for pair in filter(None, override.split(",")):
            name, _, value = pair.partition(":")
            values[name] = float(value)
        costs = Costs(**{name: float(values[name]) for name in names if name in values})
        return costs, float(values["candidates"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"costs={file!r} with set={override!r} has no costs: {error}; give a JSON file with "
            f"{', '.join(sorted(names))}, in seconds, and candidates"
        ) from error


if __name__ == "__main__":
    run_as_command(main)
