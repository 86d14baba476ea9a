"""What the initial program's verdict says of its problem: whether a run can begin with it."""

import importlib.util

from engine.core import Evaluation, Failure, Problem, UserError
from engine.core.bundle import files_of
from engine.problem.initial import entry_of, path_of_initial
from engine.problem.peers import fault_of
from engine.problem.places import place_of_function, place_of_key

_OURS = "evaluator: "  # begins what went wrong outside the program


def check_initial_verdict(problem: Problem, evaluation: Evaluation) -> float:
    """Return the initial program's score.

    Raises:
        UserError: it has none, or the problem's target is no better; the message says where that
            has to be mended.
    """
    score = evaluation.score
    if score is None:
        where, remedy = _fault(problem, evaluation)
        said = evaluation.message.removeprefix(_OURS)
        raise UserError(
            f"{where}: the initial program of {problem.name} fails: {said}; {remedy}; a run needs "
            "one with a score"
        )
    target = problem.target
    if target is not None and not problem.direction.better(target, than=score):
        raise UserError(
            f"{place_of_key(problem.folder, 'target')}: the target is {target!r}, no better than "
            f"the initial program's score, {score!r} ({problem.direction}); mend 'target', or "
            "leave it out"
        )
    return score


def _fault(problem: Problem, evaluation: Evaluation) -> tuple[str, str]:
    """Return where the failure of an initial program is to be mended, and how."""
    folder, failure = problem.folder, evaluation.failure
    if problem.judge is not None:
        return fault_of(folder, failure, evaluation.message)
    program = entry_of(problem).place
    lost = [name for name in problem.modules if _is_missing(name)]
    if evaluation.message.startswith(_OURS) and lost:
        where = place_of_key(folder, "modules")
        return where, f"install {lost[0]!r}, or take it out of 'modules'"
    if evaluation.message.startswith(_OURS):
        return place_of_function(folder / "evaluator.py", "score"), "mend the evaluator"
    if failure is Failure.TIMEOUT:
        return place_of_key(folder, "limits"), "raise limits.seconds, or make it faster"
    if failure is Failure.MEMORY:
        return place_of_key(folder, "limits"), "raise limits.memory_mb, or let it need less"
    if failure is Failure.OUTPUT:
        cases = place_of_function(folder / "evaluator.py", "cases")
        return program, f"mend it, or what {cases} declares"
    if failure is Failure.REJECTED:
        score = place_of_function(folder / "evaluator.py", "score")
        return program, f"mend it, or what {score} allows"
    return _file_named(problem, evaluation.message) or program, "mend it"


def _file_named(problem: Problem, message: str) -> str | None:
    """Return the file of the initial program of which a message tells a line; None if of none."""
    folder, program = problem.folder, problem.initial_program
    for name in files_of(program):
        if message.startswith(("line ", f"{name} line ")):  # the only file is not named
            return str(path_of_initial(folder, program, name))
    return None


def _is_missing(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is None
    except (ImportError, ValueError):
        return True
