"""Question: how long does a run take to start and to end, next to another version?

Method: `engine.run` with ``model=mutation`` and a budget of one candidate, so that nothing but
starting and ending is measured, in this checkout and in ``baseline`` (another one with an
environment of its own), in turns, the first round not counted. Wall seconds, the CPU seconds of the
process and its children, and the modules that the process has imported at its end.

Usage: python -m bench.start [baseline=FOLDER] [rounds=15] [problem=signal]
The last line printed is JSON: each side's figures, and this one's over the baseline's, by round.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.experiments.results import commit, machine
from bench.figures import spread
from bench.options import read_options, run_as_command, whole_number
from engine.core import UserError

DEFAULTS = {"baseline": "", "rounds": "15", "problem": "signal"}
ROOT = Path(__file__).parents[1]
_RUN = """\
import sys
from engine.run import main
code = main(sys.argv[1:])
print(len(sys.modules))
sys.exit(code)
"""
Figures = Mapping[str, float]


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = read_options(arguments, DEFAULTS, usage=__doc__ or "")
    sides = {"now": ROOT}
    if options["baseline"]:
        sides["baseline"] = Path(options["baseline"]).resolve()
        if not (sides["baseline"] / ".venv").is_dir():
            raise UserError(f"baseline={options['baseline']} has no .venv; run make environment")
    rounds: list[dict[str, Figures]] = []
    for turn in range(whole_number(options, "rounds") + 1):
        order = list(sides.items())[:: -1 if turn % 2 else 1]
        rounds.append({side: measured(folder, options["problem"]) for side, folder in order})
        sys.stdout.write(f"{rounds[-1]}\n")
        sys.stdout.flush()
    del rounds[0]  # files were not in the page cache
    keys = [*rounds[0]["now"]]
    result = {
        side: {key: spread([each[side][key] for each in rounds]) for key in keys} for side in sides
    }
    if "baseline" in sides:
        result["ratio"] = {
            key: spread([each["now"][key] / each["baseline"][key] for each in rounds])
            for key in keys
        }
    told = {name: given for name, given in options.items() if name != "baseline"}
    sys.stdout.write(
        json.dumps({**result, "options": told, "commit": commit(), "machine": machine()}) + "\n"
    )


def measured(checkout: Path, problem: str) -> Figures:
    """Make a run of one candidate; return what it took."""
    with tempfile.TemporaryDirectory() as runs:
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            [
                *(str(checkout / ".venv/bin/python"), "-c", _RUN, f"problem={problem}"),
                *("model=mutation", "budget.candidates=1", f"runs={runs}"),
            ],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout)},
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"the run in {checkout} ended with {done.returncode}: {done.stderr}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "cpu_seconds": spent, "modules": float(done.stdout.split()[-1])}


if __name__ == "__main__":
    run_as_command(main)
