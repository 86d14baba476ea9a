"""From what was seen of a program's run to the verdict; the only place where scores are made.

The scorer gets nothing but arrays that were checked here against the problem's contract.
"""

import logging
import math
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from engine.core import SECONDS, Case, Evaluation, Failure, Outputs, Problem, Rejected, Stage
from engine.evaluation._native import THREAD_LIMIT, Ended, Observation, Outcome
from engine.evaluation.contract import ContractError, unpack
from engine.evaluation.wire import RAISED, RETURNED
from engine.problem.places import place_of_callable, place_of_error

_MESSAGE_CHARACTERS = 300
_ARTIFACT_CHARACTERS = 2048
OUT_OF_MEMORY = re.compile(r"bad_alloc|out of memory|memory allocation", re.IGNORECASE)
"""What C++, OpenBLAS and LLVM print when they end a process because an allocation failed."""

_log = logging.getLogger(__name__)


def groups(problem: Problem, stage: Stage) -> list[tuple[Case, ...]]:
    """Return the cases of ``stage`` as they are run: one group for each process."""
    return [(case,) for case in stage.cases] if problem.isolate_cases else [stage.cases]


class Failed(Exception):
    """The program gets no score; the text says why, in a line."""

    def __init__(self, failure: Failure, message: str, traceback: str = "") -> None:
        super().__init__(message)
        self.failure = failure
        self.traceback = traceback


def judge(
    problem: Problem,
    stage: Stage,
    observation: Observation,
    results: Sequence[bytes],
    *,
    idle: bool = False,
) -> Evaluation:
    """Return the verdict on a program.

    Args:
        problem: what it is for.
        stage: what it was run for.
        observation: what was seen of its run.
        results: what its processes wrote, in order.
        idle: whether it ran only when nothing else wanted its core. Then its limit is that of the
            core's time, and a run that the clock ended says nothing about the program.
    """
    printed = observation.output.decode(errors="replace")
    failure, message, traceback = None, "", ""
    metrics: dict[str, float] = {}
    try:
        _check_end(problem, observation, printed, idle=idle)
        metrics = _metrics(problem, stage, _outputs(problem, stage, observation, results))
    except Failed as failed:
        failure, message, traceback = failed.failure, str(failed), failed.traceback
    return Evaluation(
        score=metrics.get("score"),
        failure=failure,
        message=one_line(message),
        metrics=metrics,
        artifacts=as_artifacts({"stdout": printed, "traceback": traceback}),
        seconds=sum(observation.seconds),
        peak_bytes=observation.peak_bytes,
    )


def as_artifacts(texts: Mapping[str, str]) -> dict[str, str]:
    """Return those of some texts that say something, bounded and fit for a terminal."""
    return {
        name: printable(text)[-_ARTIFACT_CHARACTERS:]
        for name, text in texts.items()
        if text.strip()
    }


def crashed(message: str) -> Evaluation:
    """Return the verdict on a program of whose run nothing is known."""
    return Evaluation(score=None, failure=Failure.CRASH, message=one_line(message))


def _check_end(problem: Problem, observation: Observation, printed: str, *, idle: bool) -> None:
    """Check that the run ended with results to look at."""
    if observation.outcome is Outcome.LATE or observation.ended is Ended.DEADLINE:
        seconds = problem.limits.seconds
        if idle:
            raise Failed(Failure.STARVED, f"its core was too seldom idle for {seconds:g} s of it")
        raise Failed(Failure.TIMEOUT, f"ran longer than the limit of {seconds:g} s")
    if observation.ended is Ended.CROWDED:
        raise Failed(Failure.CRASH, f"it had more than {THREAD_LIMIT} threads")
    if observation.ended not in (Ended.EXITED, Ended.UNCONFINED):
        return
    code = observation.exit_code
    if observation.ended is Ended.EXITED and code == -signal.SIGXCPU:
        seconds = problem.limits.seconds
        raise Failed(Failure.TIMEOUT, f"took more than the limit of {seconds:g} s of its core")
    if observation.ended is Ended.UNCONFINED:
        how = f"evaluator: a process could not be confined: {printed}"
    elif code < 0:
        how = f"its process was killed by {signal_name(-code)}"
    else:
        how = f"its process exited with code {code} before a result was returned"
    if code != 0 and OUT_OF_MEMORY.search(printed):
        raise Failed(Failure.MEMORY, how + memory_note(problem))
    raise Failed(Failure.CRASH, how)


def _outputs(
    problem: Problem, stage: Stage, observation: Observation, results: Sequence[bytes]
) -> list[Outputs]:
    """Return the arrays of all cases, with the seconds of those that had their own process."""
    if results and results[-1].startswith(RAISED):
        raise _raised(problem, results[-1])
    every = groups(problem, stage)
    if len(results) != len(every) or not all(each.startswith(RETURNED) for each in results):
        raise Failed(Failure.OUTPUT, "the result is malformed")
    outputs: list[Outputs] = []
    for result, group, seconds in zip(results, every, observation.seconds, strict=True):
        try:
            arrays = unpack(result[len(RETURNED) :], group)
        except ContractError as error:
            raise Failed(Failure.OUTPUT, str(error)) from error
        measured = {SECONDS: np.array(seconds)} if problem.isolate_cases else {}
        outputs += [{**each, **measured} for each in arrays]
    return outputs


def _raised(problem: Problem, result: bytes) -> Failed:
    """Return what a program says that it raised, if it has the form of that."""
    match result[len(RAISED) :].decode(errors="replace").split("\0"):
        case [Failure.MEMORY, message, traceback]:
            return Failed(Failure.MEMORY, message + memory_note(problem), traceback)
        case [(Failure.ERROR | Failure.OUTPUT) as kind, message, traceback]:
            return Failed(Failure(kind), message, traceback)
    return Failed(Failure.OUTPUT, "the result is malformed")


def signal_name(number: int) -> str:
    """Return the name of a signal, such as ``SIGKILL``."""
    known = {int(each): each.name for each in signal.Signals}
    return known.get(number, f"signal {number}")


def memory_note(problem: Problem) -> str:
    """Return what a message about memory ends with."""
    return f" (memory limit {problem.limits.memory_bytes >> 20} MiB)"


def _metrics(problem: Problem, stage: Stage, outputs: Sequence[Outputs]) -> dict[str, float]:
    """Return what the problem's own code says of the outputs; its ``score`` is finite."""
    begins = place_of_callable(stage.score, otherwise=problem.folder)
    try:
        metrics = {str(k): float(v) for k, v in stage.score(outputs).items()}
    except Rejected as error:
        raise Failed(Failure.REJECTED, str(error)) from error
    except BaseException as error:  # a bug of the problem must not stop the run
        _log.debug("the evaluator of %s failed", problem.name, exc_info=True)
        where = place_of_error(error, problem.folder, otherwise=begins)
        said = f"evaluator: {type(error).__name__}: {error} ({Path(where).name})"
        raise Failed(Failure.ERROR, said) from error
    if not math.isfinite(score := metrics.get("score", math.nan)):
        lacks = f"the score is {score}" if "score" in metrics else _no_score(metrics)
        raise Failed(Failure.ERROR, f"evaluator: {lacks} ({Path(begins).name})")
    return metrics


def _no_score(metrics: Mapping[str, float]) -> str:
    return f"there is no metric 'score', only {', '.join(sorted(metrics)) or 'none at all'}"


def one_line(text: str) -> str:
    """Return a program's text as a message: one line, bounded, fit for a terminal."""
    return printable(" ".join(text.split()))[:_MESSAGE_CHARACTERS]


def printable(text: str) -> str:
    """Replace what could act on a terminal; the text is the program's."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
