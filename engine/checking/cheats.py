"""A problem's ``cheats``: programs that try to gain without doing the task."""

from collections.abc import Iterator
from pathlib import Path

from engine.checking.finding import Finding, doubtful, good, wrong
from engine.checking.trials import Baseline, Trials, place_of_score
from engine.core import Failure, Problem
from engine.core.bundle import bundle_of, files_of, is_bundle
from engine.syntax import read
from engine.syntax.blocks import outline

FOLDER = "cheats"
_AGAIN = 3
_NEVER_BEGAN = ("SyntaxError", "IndentationError", "defines no function")


def check_cheats(problem: Problem, trials: Trials, baseline: Baseline) -> Iterator[Finding]:
    """Run every cheat: each has to fail, or to be no better than the initial program."""
    folder = problem.folder / FOLDER
    endings = _endings(problem.initial_program)
    files = sorted(each for each in folder.glob("*.*") if each.suffix in endings)
    harmless = []
    for file in files:
        cheat = file.read_text(encoding="utf-8", errors="surrogateescape")
        text = _whole(cheat, problem.initial_program)
        evaluation = trials.run(text).evaluation
        if baseline.gains(evaluation.score) and _gains_again(problem, text, trials, baseline):
            yield wrong(
                "cheats",
                f"it scores {evaluation.score!r}, better than the initial program's "
                f"{baseline.best!r}",
                where=str(file),
                remedy=f"find what it makes use of, and refuse that in {place_of_score(problem)}",
            )
        elif read(text) is None or _never_began(evaluation.failure, evaluation.message):
            yield doubtful(
                "cheats",
                f"it tried nothing: {evaluation.message}",
                where=str(file),
                remedy="mend it, so that it fails for another reason",
            )
        else:
            harmless.append(file.stem)
    if not files:
        yield doubtful(
            "cheats",
            "there are none",
            where=str(folder),
            remedy="add programs that try to gain without doing the task; python -m engine.new "
            "makes some to begin with",
        )
    elif harmless:
        yield good("cheats", f"nothing is gained by {', '.join(harmless)}")


def _endings(initial_program: str) -> set[str]:
    """Return how the names of cheats end: as Python's, or as the files that may change."""
    if not is_bundle(initial_program):
        return {".py"}
    return {".py", *(Path(each.name).suffix for each in outline(initial_program).open_files)}


def _whole(cheat: str, initial_program: str) -> str:
    """Return the program that a cheat is: in one of several files, it is the one that may change.

    Where several may change, a cheat has to have all of them, in the form of `engine.core.bundle`.
    """
    if is_bundle(cheat) or not is_bundle(initial_program):
        return cheat
    changing = outline(initial_program).open_files
    if len(changing) != 1:
        return cheat
    return bundle_of({**files_of(initial_program), changing[0].name: cheat})


def _gains_again(problem: Problem, text: str, trials: Trials, baseline: Baseline) -> bool:
    """Return whether a gain was no luck, as it may be where time counts and the machine is busy."""
    for _ in range(_AGAIN):
        initial = trials.run(problem.initial_program).evaluation.score
        baseline = baseline if initial is None else baseline.with_score(initial)
        if not baseline.gains(trials.run(text).evaluation.score):
            return False
    return True


def _never_began(failure: Failure | None, message: str) -> bool:
    return failure is Failure.ERROR and any(each in message for each in _NEVER_BEGAN)
