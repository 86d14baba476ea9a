"""A problem that was made in Python, kept in its run's folder as far as it is data.

So reports and pools read what they need of it, as of any other folder. Its functions are nowhere
but in the Python that made it: ``evaluator.py`` says so when the folder is loaded to be run.
"""

from pathlib import Path

import yaml

from engine.core import Problem

KEPT = "problem"
"""Folder of a run in which a problem that was made in Python is kept."""
_EVALUATOR = (
    "raise ImportError(\n"
    '    "this problem is two functions that were made in Python; go on from there, with "\n'
    '    "engine.Run.resume(FOLDER, problem=...)"\n'
    ")\n"
)


def keep_problem(problem: Problem, folder: Path) -> None:
    """Write what is data of a problem into a folder, which is made.

    Raises:
        OSError: it can't be written.
    """
    declared = {
        "direction": problem.direction.value,
        "entry_point": problem.entry_point,
        "limits": {
            "seconds": problem.limits.seconds,
            "memory_mb": problem.limits.memory_bytes >> 20,
        },
        "isolate_cases": problem.isolate_cases,
        "modules": list(problem.modules),
        "features": {each.name: [each.low, each.high, each.bins] for each in problem.features},
        **({} if problem.target is None else {"target": problem.target}),
    }
    folder.mkdir(parents=True)
    for name, text in (
        ("problem.yaml", yaml.safe_dump(declared, sort_keys=False)),
        ("statement.md", problem.statement + "\n"),
        ("initial.py", problem.initial_program),
        ("evaluator.py", _EVALUATOR),
    ):
        (folder / name).write_text(text, encoding="utf-8")
