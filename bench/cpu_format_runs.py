"""Question: what does the number format bring a run on a CPU, and what does it cost in children?

Method: ``rounds`` rounds of runs of problem signal, one in each arm, each time another one first,
and the same seed for all runs of a round. Children a second are by the run's wall clock, so what
else the machine does is in them; ratios are taken within a round. The shares of children with a
score (valid) and with a better one than their parent's (improved) are over all rounds, with their
95 % Wilson intervals, which take children for independent.

Arms: what ``model.dtype`` takes, or ``int8-DTYPE`` (``bench.int8``), or ``baseline``: the checkout
at ``baseline=FOLDER`` with its own environment, whose defaults are taken. ``cpu=old`` hides newer
instructions, see ``bench.cpu_format``, from all arms.

Usage: python -m bench.cpu_format_runs [cpu=this|old] [rounds=3] [seconds=60] [baseline=FOLDER]
       [arms=auto,bfloat16]
The last line printed is JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.cpu_format import CPUS, ROOT, ratios
from bench.figures import spread
from bench.int8 import int8_folder
from bench.options import number, read_options, run_as_command, whole_number
from engine import config
from engine.core import UserError
from engine.inference import find_weights
from engine.report.analysis.figures import wilson

BASELINE = "baseline"
DEFAULTS = {
    "cpu": "this",
    "rounds": "3",
    "seconds": "60",
    "baseline": "",
    "arms": "auto,bfloat16",
}


def run(
    checkout: Path, arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path
) -> float:
    """Make one run; return its children a second."""
    side = ROOT / "bench" / "cpu_format_side.py"
    subprocess.run(
        [
            *(str(checkout / ".venv/bin/python"), str(side), "run", "problem=signal"),
            *("budget.candidates=1000000", f"runs={folder.parent}", f"name={folder.name}"),
            *arguments,
        ],
        cwd=checkout,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return float(summary["children"]) / float(summary["wall_seconds"])


def shares(folders: Sequence[Path], *, scratch: Path) -> dict[str, Any]:
    """Return how many children of some runs were valid and better than their parents."""
    report = scratch / "report.json"
    subprocess.run(
        [
            *(sys.executable, "-m", "engine.report", *map(str, folders)),
            *("analysis=operators", f"json={report}"),
        ],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    rows = json.loads(report.read_text(encoding="utf-8"))["figures"]["operators"]
    children = sum(row["children"] for row in rows)
    found: dict[str, Any] = {"children": children}
    for name in ("valid", "improved"):
        hits = sum(row[name] for row in rows)
        low, high = wilson(hits, children)
        found[name] = {"share": round(hits / children, 4), "interval_95": [low, high]}
    return found


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    if options["cpu"] not in CPUS:
        raise UserError(f"cpu={options['cpu']}: there are {', '.join(CPUS)}")
    rounds, seconds = whole_number(options, "rounds"), number(options, "seconds")
    arms = options["arms"].split(",") + ([BASELINE] if options["baseline"] else [])
    rates: dict[str, list[float]] = {arm: [] for arm in arms}
    folders: dict[str, list[Path]] = {arm: [] for arm in arms}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        given = {
            arm: [f"model.dtype={arm.removeprefix('int8-')}"] for arm in arms if arm != BASELINE
        }
        for arm in arms:
            if arm.startswith("int8-"):
                weights = find_weights(config.resolve([]).model)
                given[arm].append(f"model.path={int8_folder(weights, scratch / arm)}")
        for turn in range(rounds):
            for arm in [*arms[turn % len(arms) :], *arms[: turn % len(arms)]]:
                folders[arm].append(scratch / f"run-{arm}-{turn}")
                rate = run(
                    Path(options["baseline"]) if arm == BASELINE else ROOT,
                    [*given.get(arm, ()), f"budget.seconds={seconds}", f"seed={turn}"],
                    environment=CPUS[options["cpu"]],
                    folder=folders[arm][-1],
                )
                rates[arm].append(rate)
                sys.stdout.write(f"round {turn}, {arm}: {rate:.2f} children/s\n")
                sys.stdout.flush()
        result = {
            "options": options,
            "children_per_second": {arm: spread(each, digits=2) for arm, each in rates.items()},
            f"speed_over_{arms[-1]}": {
                arm: spread(ratios(rates[arm], rates[arms[-1]])) for arm in arms[:-1]
            },
            "shares": {
                arm: shares(folders[arm], scratch=scratch) for arm in arms if arm != BASELINE
            },
        }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    run_as_command(main)
