"""``python -m engine.report``: analyses of one or several recorded runs of the same problem.

    python -m engine.report runs/A runs/B analysis=progress
    python -m engine.report runs/A analysis=replay top=3 json=replay.json

analysis=progress   best score so far against candidates, tokens, seconds and money
         replay     the best programs and how they came to be; what the first m children bring
         ranks      what each place among the children of a call brings, for each K
         distance   improvement by the parent's distance from what is shown beside it, and K
         coverage   filled cells of a MAP-Elites archive against candidates
         operators  improvement rate of each operator
         parents    improvement rate of each way to choose parents
         learning   the steps of training, and what calls brought before and after them
json=FILE           write all numbers to a file
top=N               programs that the replay shows (5)

Runs may go on meanwhile, or have been killed. Exit codes: 0, or 2 for bad input.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.arguments import Arguments, execute
from engine.core import UserError
from engine.report.analysis import ANALYSES, read_runs
from engine.report.summary import write_whole

_TOP = 5


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    return execute(_report, arguments, keys=("analysis", "json", "top"), usage=__doc__ or "")


def _report(arguments: Arguments) -> int:
    analysis, written = arguments.options.get("analysis"), arguments.options.get("json")
    known = ", ".join(ANALYSES)
    if analysis is None:
        raise UserError(f"give analysis=NAME; valid: {known}")
    if analysis not in ANALYSES:
        raise UserError(f"unknown analysis {analysis!r}; valid: {known}")
    if written is not None and not Path(written).name:
        raise UserError(f"json is {written!r}; it must be a file")
    top = arguments.number("top", _TOP)
    runs = read_runs([Path(each) for each in arguments.rest])
    tables = ANALYSES[analysis](runs, top)
    if written is not None:
        figures = {name: table.rows for name, table in tables.items()}
        found = {"analysis": analysis, "runs": [run.name for run in runs], "figures": figures}
        write_whole(Path(written), json.dumps(found, indent=2, allow_nan=False) + "\n")
    sys.stdout.write("\n".join(table.text() for table in tables.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
