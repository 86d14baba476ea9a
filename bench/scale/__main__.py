"""Question: where do candidates an hour stop growing with GPUs, and what breaks first?

Method: a simulation (``bench/scale/simulation.py``) with the costs in ``costs``, a JSON file with
the fields of `Costs`; single ones are overridden by ``set``, as in ``set=call:4,evaluation:0.2``.
It was not compared with real runs yet, and no costs come with it.

For each number of workers: candidates an hour; the shares of the time in which the store works,
islands wait for it, islands wait for their neighbours' migrants, and the driver is at work. Then,
at ``at`` workers, what migration's interval costs, with workers of unequal speed (``spread``), and
what deaths cost.

Usage: python -m bench.scale costs=FILE [set=NAME:SECONDS,...] [workers=1,4,16,64,256,1024,4096]
       [every=0,1,5,10,50] [at=64] [spread=0.2] [life=24] [seeds=3] [seconds=600]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

from bench.options import number, read_options
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
    "seconds": "600",
}


def main(arguments: Sequence[str]) -> None:
    """Simulate and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    costs = read_costs(options["costs"], options["set"])
    seconds, seeds = number(options, "seconds"), int(number(options, "seeds"))
    how = {"seeds": seeds, "warm": seconds / 4, "seconds": seconds}

    def shown(cluster: Cluster) -> dict[str, object]:
        found = simulated(costs, cluster, **how)  # type: ignore[arg-type]
        sys.stdout.write(f"{found}\n")
        return found

    growth = [shown(Cluster(workers=int(each))) for each in options["workers"].split(",")]
    at, spread = int(number(options, "at")), number(options, "spread")
    uneven = Cluster(workers=at, spread=spread)
    migration = [
        {"every": int(each), **shown(replace(uneven, every=int(each)))}
        for each in options["every"].split(",")
    ]
    deaths = shown(replace(uneven, life=number(options, "life")))
    result = {
        "costs": asdict(costs),
        "growth": growth,
        "migration": migration,
        "deaths": deaths,
        "options": options,
    }
    sys.stdout.write(json.dumps(result) + "\n")


def read_costs(file: str, override: str) -> Costs:
    """Return the costs of a file, some of them overridden.

    Raises:
        UserError: there is no such file, or no such cost.
    """
    names = {each.name for each in fields(Costs)}
    try:
        values = json.loads(Path(file).read_text())
        for pair in filter(None, override.split(",")):
            name, _, value = pair.partition(":")
            values[name] = float(value)
        return Costs(**{name: float(value) for name, value in values.items() if name in names})
    except (OSError, ValueError, TypeError) as error:
        raise UserError(
            f"costs={file!r} with set={override!r} has no costs: {error}; give a JSON file with "
            f"{', '.join(sorted(names))}, in seconds"
        ) from error


if __name__ == "__main__":
    main(sys.argv[1:])
