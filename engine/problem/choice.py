"""Which problem a command line names: ``problem=NAME``, or ``problem.path=FOLDER``."""

from collections.abc import Mapping
from pathlib import Path

from engine.core import Problem, UserError
from engine.problem.folder import load_problem, shipped

CHOICE = ("problem", "problem.path", "data", "metric")
"""The options that choose one, ``metric`` of another system's problem what its score is."""


def chosen_problem(options: Mapping[str, str]) -> Problem:
    """Load the problem that the options of a command name.

    Raises:
        UserError: they name none or two, or one that can't be loaded.
    """
    for key, value in options.items():
        if not value:
            raise UserError(f"{key}= has no value")
    names = ", ".join(shipped())
    if ("problem" in options) == ("problem.path" in options):
        raise UserError(f"give one of problem=NAME ({names}) and problem.path=FOLDER")
    if "problem.path" in options:
        folder = Path(options["problem.path"])
    elif options["problem"] in shipped():
        folder = shipped()[options["problem"]]
    else:
        raise UserError(f"unknown problem {options['problem']!r}; valid problems: {names}")
    data = Path(options["data"]) if "data" in options else None
    return load_problem(folder, data=data, metric=options.get("metric"))
