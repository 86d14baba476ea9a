"""``python -m engine.evaluate problem=NAME program=FILE``: score a program outside a run.

    python -m engine.evaluate problem=signal program=runs/A/best.py
    python -m engine.evaluate problem.path=my/problem program=try.py

``program=FOLDER`` takes a program of several files.
``problem.path=FOLDER`` instead of ``problem=NAME`` takes a problem from any folder, ``data=PATH``
gives a problem that reads data the user's own, ``metric=NAME`` says which metric of another
system's problem is the score. ``evaluation.strict=true`` refuses, as in a run, a wall that can't be
had here, and an evaluator that can't be split from the program. ``program=initial`` is the
problem's initial program. Runs the full evaluation, no cheap stage. Prints the score and all
metrics in full precision. Exit codes: 0 the program is valid, 1 it failed, 2 the input is wrong
(one line on standard error), or the problem's own initial program fails.
"""

import contextlib
import gc
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.arguments import Arguments, execute
from engine.core import INITIAL, Evaluation, Problem, UserError
from engine.core.bundle import files_of, is_bundle
from engine.evaluation import open_pool, rehearsed
from engine.problem import CHOICE, check_initial_verdict, chosen_problem, read_program

_MOST_NAMED = 8  # files of a program
KEYS = (*CHOICE, "program", "evaluation.strict")


def main(arguments: Sequence[str]) -> int:
    """Evaluate as ``arguments`` say and return the exit code."""
    return execute(_evaluate, arguments, keys=KEYS, usage=__doc__ or "")


def _evaluate(arguments: Arguments) -> int:
    for argument in arguments.rest:
        raise UserError(f"unknown argument {argument!r}; valid keys: {', '.join(KEYS)}")
    given = arguments.options
    if "program" not in given:
        raise UserError("program= is missing; give the file to score, program=FILE")
    problem = chosen_problem(given)
    program = _program(given["program"], problem)
    strict = arguments.flag("evaluation.strict")
    problem = rehearsed(problem, strict=strict)
    with open_pool(problem=problem, workers=1, only=program) as pool:
        if strict:
            pool.check_walls(strict=True)
        pool.submit(candidate_id="program", program=program)
        _load_scorer(problem)  # while the program's process warms up
        ((_, evaluation),) = pool.completed(timeout=None)
    if program == problem.initial_program:
        check_initial_verdict(problem, evaluation)  # else it is the problem that is broken
    sys.stdout.write("\n".join(_lines(problem, evaluation)) + "\n")
    return 0 if evaluation.failure is None else 1


def _program(named: str, problem: Problem) -> str:
    """Return the program of a problem that ``program=`` names.

    Raises:
        UserError: it can't be read, or is a folder without a file that the problem's programs have.
    """
    initial = problem.initial_program
    if named == INITIAL:
        return initial
    path, files = Path(named), [*files_of(initial)]
    if path.is_dir() and not any((path / name).is_file() for name in files):
        if is_bundle(initial):
            more = ", ..." if len(files) > _MOST_NAMED else ""
            expected = f"give a folder with {', '.join(files[:_MOST_NAMED])}{more}"
        else:
            expected = "it is one file: give program=FILE"
        raise UserError(f"{path} holds no program of problem {problem.name}; {expected}")
    return read_program(path, initial_program=initial)


def _load_scorer(problem: Problem) -> None:
    """Score zeros: the first score of a process loads compiled code, and numba itself."""
    outputs = [
        {
            name: np.zeros([n if isinstance(n, int) else n[0] for n in spec.shape], spec.dtype)
            for name, spec in case.outputs.items()
        }
        for case in problem.cases
    ]
    with contextlib.suppress(Exception):  # zeros may well be refused; nobody asked
        problem.score(outputs)


def _lines(problem: Problem, evaluation: Evaluation) -> list[str]:
    lines = [f"problem    {problem.name} ({problem.direction})"]
    if evaluation.failure is None:
        lines.append(f"score      {evaluation.score!r}")
        others = {name: value for name, value in evaluation.metrics.items() if name != "score"}
        width = max(map(len, others), default=0)
        lines += [f"  {name:{width}}  {value!r}" for name, value in others.items()]
    else:
        lines.append(f"failure    {evaluation.failure}")
        lines.append(f"message    {evaluation.message}")
    lines.append(f"seconds    {evaluation.seconds:.6f}")
    lines.append(f"peak       {evaluation.peak_bytes / 2**20:.1f} MiB")
    for name, text in evaluation.artifacts.items():
        lines += [f"{name}:", *(f"  {line}" for line in text.splitlines())]
    return lines


if __name__ == "__main__":
    # The garbage of a process this short is not worth looking for, neither now nor when it ends.
    gc.disable()
    code = main(sys.argv[1:])
    gc.freeze()
    sys.exit(code)
