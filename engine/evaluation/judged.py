"""From what was seen of a judge's run to the verdict. Nothing of it is believed as it stands.

A judge's last line of output is a JSON object: its numbers are metrics, and the one that the
problem names is the score; ``artifacts`` are texts by name for the model to see; a text ``error``
says why there is no score, and ``failure`` may name one of `Failure` for it. What else is in it is
left out.

Does not cover how the judge came by it. Where the program's code runs in the judge's own box, as
beside a `JudgeKind.COMMAND` and `JudgeKind.TOGETHER`, it may print such a line too: the score is as
safe as the evaluator makes it.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from engine.core import Evaluation, Failure, Judge, JudgeKind, Problem
from engine.evaluation._native import Ended, Observation, Outcome
from engine.evaluation.attendant import STDOUT_BYTES, Seen
from engine.evaluation.verdict import (
    OUT_OF_MEMORY,
    Failed,
    as_artifacts,
    memory_note,
    one_line,
    printable,
    signal_name,
)

_MOST_METRICS = 256
_MOST_ARTIFACTS = 32
_NAME_CHARACTERS = 100
_SHOWN_CHARACTERS = 80
_MEMORY_ERROR = "MemoryError"  # Python's, in the last line of a traceback
_FAILURES = {
    each.value: each for each in Failure if each not in (Failure.SCREENED, Failure.STARVED)
}


def judged(problem: Problem, judge: Judge, observation: Observation, seen: Seen) -> Evaluation:
    """Return the verdict on a program.

    Args:
        problem: what it is for.
        judge: that evaluated it.
        observation: how the judge's run ended.
        seen: what was printed.
    """
    failure, message = None, ""
    metrics: dict[str, float] = {}
    printed, line = _split(seen.stdout)
    program = seen.program
    if seen.candidate is not None and seen.candidate != 0:
        program += f"\n(the program's process {_end(seen.candidate)})"
    # In order of what helps: the last ones are left out where the model sees but some.
    texts = {"stderr": seen.stderr, "stdout": printed}
    try:
        _check_end(problem, judge, observation, seen)
        verdict = _parse(line)
        texts = {**texts, **_artifacts(verdict)}
        metrics = _metrics(judge, verdict)
    except Failed as failed:
        failure, message = failed.failure, str(failed)
        if failure is Failure.OUTPUT:
            texts["stdout"] = seen.stdout
    if judge.kind is JudgeKind.SPLIT:
        texts = {**texts, "program": program}
    return Evaluation(
        score=metrics.get("score"),
        failure=failure,
        message=one_line(message),
        metrics=metrics,
        artifacts=as_artifacts(texts),
        seconds=sum(observation.seconds),
        peak_bytes=observation.peak_bytes,
    )


def _end(code: int) -> str:
    return f"was killed by {signal_name(-code)}" if code < 0 else f"exited with code {code}"


def _check_end(problem: Problem, judge: Judge, observation: Observation, seen: Seen) -> None:
    """Check that the judge ended by itself, and well."""
    if observation.outcome is Outcome.LATE or observation.ended is Ended.DEADLINE:
        seconds = problem.limits.seconds
        raise Failed(Failure.TIMEOUT, f"ran longer than the limit of {seconds:g} s")
    if observation.ended is Ended.MEMORY:
        raise Failed(Failure.MEMORY, "its processes took too much memory" + memory_note(problem))
    if observation.ended is Ended.CROWDED:
        many = f"it had more than {judge.processes} processes and threads"
        raise Failed(Failure.CRASH, many)
    if observation.ended is Ended.SCRATCH:
        raise Failed(Failure.CRASH, f"it wrote more than {judge.scratch_mb} MiB of files")
    if observation.ended is Ended.UNCONFINED:
        said = f"evaluator: a process could not be confined: {seen.stderr}"
        raise Failed(Failure.CRASH, said)
    if observation.exit_code == 0:
        return
    last = seen.stderr.strip().rpartition("\n")[2]
    how = f"the judge {_end(observation.exit_code)}" + (f": {last}" if last else "")
    if OUT_OF_MEMORY.search(seen.stderr) or last.startswith(_MEMORY_ERROR):
        raise Failed(Failure.MEMORY, how + memory_note(problem))
    raise Failed(Failure.CRASH, how)


def _split(text: str) -> tuple[str, str]:
    """Return what a judge printed before its last line that says something, and that line."""
    before, _, line = text.rstrip().rpartition("\n")
    return before, line


def _parse(line: str) -> Mapping[str, Any]:
    """Return the object in a judge's last line."""
    try:
        verdict = json.loads(line)
    except (ValueError, RecursionError):
        verdict = None
        if len(line) >= STDOUT_BYTES - 1:  # and the newline
            longest = f"{STDOUT_BYTES >> 20} MiB"
            raise Failed(
                Failure.OUTPUT, f"the judge's last line is longer than {longest}"
            ) from None
    if not isinstance(verdict, dict):
        shown = repr(printable(line[:_SHOWN_CHARACTERS]))
        raise Failed(Failure.OUTPUT, f"the judge's last line is no JSON object but {shown}")
    return verdict


def _artifacts(verdict: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts that a judge gives for the model."""
    given = verdict.get("artifacts")
    if not isinstance(given, dict):
        return {}
    texts = ((_name(name), text) for name, text in given.items())
    return {name: text for name, text in list(texts)[:_MOST_ARTIFACTS] if isinstance(text, str)}


def _name(text: str) -> str:
    return " ".join(printable(text).split())[:_NAME_CHARACTERS]


def _metrics(judge: Judge, verdict: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a judge's verdict, the score among them as ``score``."""
    error = verdict.get("error")
    if error is not None and error is not False and error != "":
        failure = _FAILURES.get(str(verdict.get("failure")), Failure.ERROR)
        raise Failed(failure, error if isinstance(error, str) else json.dumps(error))
    numbers = {
        _name(name): _number(value)
        for name, value in verdict.items()
        if isinstance(value, int | float)
    }
    if judge.metric not in numbers:
        names = ", ".join(sorted(numbers)) or "no number at all"
        raise Failed(
            Failure.OUTPUT, f"the judge gives no number {judge.metric!r}; it gives {names}"
        )
    score = numbers[judge.metric]
    if not math.isfinite(score):
        raise Failed(Failure.OUTPUT, f"the score {judge.metric!r} is {score}")
    # JSON, in which a run records them, has no other numbers.
    finite = [(name, value) for name, value in numbers.items() if math.isfinite(value)]
    return {**dict(finite[:_MOST_METRICS]), "score": score}


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return math.inf if value > 0 else -math.inf
