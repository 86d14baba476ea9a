"""``python -m engine.check problem.path=DIR``: does a problem measure what it is meant to?

    python -m engine.check problem.path=my_problem
    python -m engine.check problem=signal runs=20

Runs the initial program ``runs`` times (5) and the problem's cheats, and scores answers that nobody
worked out: see ``docs/problems.md``. ``data=PATH`` gives a problem that reads data the user's own.
Prints a line for each finding: ok, warning or error, what was looked at, file and line, and what to
do. Exit codes: 0 there is no error, 1 there is one, 2 the problem can't be loaded or its initial
program has no score (one line on standard error).
"""

import logging
import sys
from collections import Counter
from collections.abc import Sequence

from engine.arguments import Arguments, execute
from engine.checking import RUNS, Level, check_problem
from engine.core import UserError
from engine.evaluation import rehearsed
from engine.problem import CHOICE, chosen_problem

KEYS = (*CHOICE, "runs")


def main(arguments: Sequence[str]) -> int:
    """Check what ``arguments`` name and return the exit code."""
    logs = [logging.getLogger(name) for name in ("engine", "brood")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)  # the findings say it
    try:
        return execute(_check, arguments, keys=KEYS, usage=__doc__ or "")
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


def _check(arguments: Arguments) -> int:
    for argument in arguments.rest:
        raise UserError(f"unknown argument {argument!r}; valid keys: {', '.join(KEYS)}")
    runs = arguments.number("runs", RUNS)
    problem = rehearsed(chosen_problem(arguments.options), strict=False)
    found: Counter[Level] = Counter()
    for finding in check_problem(problem, runs=runs):
        print(finding, flush=True)
        found[finding.level] += 1
    print(f"{problem.folder}: {found[Level.ERROR]} errors, {found[Level.WARNING]} warnings")
    return 1 if found[Level.ERROR] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
