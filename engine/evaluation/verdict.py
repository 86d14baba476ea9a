"""From what was seen of a program's run to the verdict; the only place where scores are made.

The scorer gets nothing but arrays that were checked here against the problem's contract.
"""

from __future__ import annotations

import logging
import math
import re
import signal
from collections.abc import Sequence

import numpy as np

from engine.core import SECONDS, Case, Evaluation, Failure, Outputs, Problem, Rejected, Stage
from engine.evaluation._native import THREAD_LIMIT, Ended, Observation, Outcome
from engine.evaluation.contract import ContractError, unpack
from engine.evaluation.wire import RAISED, RETURNED

_MESSAGE_CHARACTERS = 300
_ARTIFACT_CHARACTERS = 2048
# What C++, OpenBLAS and LLVM print when they end a process because an allocation failed.
_OUT_OF_MEMORY = re.compile(r"bad_alloc|out of memory|memory allocation", re.IGNORECASE)

_log = logging.getLogger(__name__)


def groups(problem: Problem, stage: Stage) -> list[tuple[Case, ...]]:
    """Return the cases of ``stage`` as they are run: one group for each process."""
    return [(case,) for case in stage.cases] if problem.isolate_cases else [stage.cases]


def judge(
    problem: Problem, stage: Stage, observation: Observation, results: Sequence[bytes]
) -> Evaluation:
    """Return the verdict on a program.

    Args:
        problem: what it is for.
        stage: what it was run for.
        observation: what was seen of its run.
        results: what its processes wrote, in order.
    """
    failed = _failure(problem, stage, observation, results)
    if failed is not None:
        return failed
    try:
        outputs = _outputs(problem, stage, observation, results)
    except ContractError as error:
        return _failed(observation, Failure.OUTPUT, str(error))
    return _score(problem, stage, outputs, observation)


def crashed(message: str) -> Evaluation:
    """Return the verdict on a program of whose run nothing is known."""
    return Evaluation(score=None, failure=Failure.CRASH, message=_one_line(message))


def _failure(
    problem: Problem, stage: Stage, observation: Observation, results: Sequence[bytes]
) -> Evaluation | None:
    """Return the verdict if the run itself failed, None if it ended with results to check."""
    if observation.outcome is Outcome.LATE or observation.ended is Ended.DEADLINE:
        message = f"ran longer than the limit of {problem.limits.seconds:g} s"
        return _failed(observation, Failure.TIMEOUT, message)
    if observation.ended is Ended.CROWDED:
        return _failed(observation, Failure.CRASH, f"it had more than {THREAD_LIMIT} threads")
    if observation.ended in (Ended.EXITED, Ended.UNCONFINED):
        return _died(problem, observation)
    if results and results[-1].startswith(RAISED):
        return _raised(problem, observation, results[-1])
    if len(results) != len(groups(problem, stage)) or not all(
        result.startswith(RETURNED) for result in results
    ):
        return _failed(observation, Failure.OUTPUT, "the result is malformed")
    return None


def _outputs(
    problem: Problem, stage: Stage, observation: Observation, results: Sequence[bytes]
) -> list[Outputs]:
    """Return the arrays of all cases, with the seconds of those that had their own process."""
    outputs: list[Outputs] = []
    for result, group, seconds in zip(
        results, groups(problem, stage), observation.seconds, strict=True
    ):
        arrays = unpack(result[len(RETURNED) :], group)
        measured = {SECONDS: np.array(seconds)} if problem.isolate_cases else {}
        outputs += [{**each, **measured} for each in arrays]
    return outputs


def _raised(problem: Problem, observation: Observation, result: bytes) -> Evaluation:
    texts = result[len(RAISED) :].decode(errors="replace").split("\0")
    kinds = {str(kind): kind for kind in (Failure.ERROR, Failure.MEMORY, Failure.OUTPUT)}
    if len(texts) != 3 or texts[0] not in kinds:
        return _failed(observation, Failure.OUTPUT, "the result is malformed")
    kind, message, traceback = kinds[texts[0]], texts[1], texts[2]
    if kind is Failure.MEMORY:
        message += _memory_note(problem)
    return _failed(observation, kind, message, traceback)


def _died(problem: Problem, observation: Observation) -> Evaluation:
    code = observation.exit_code
    if code < 0:
        known = {int(number): number.name for number in signal.Signals}
        how = f"its process was killed by {known.get(-code, f'signal {-code}')}"
    else:
        how = f"its process exited with code {code} before a result was returned"
    if observation.ended is Ended.UNCONFINED:
        how = f"evaluator: a process could not be confined: {_printed(observation)}"
    if code != 0 and _OUT_OF_MEMORY.search(_printed(observation)):
        return _failed(observation, Failure.MEMORY, how + _memory_note(problem))
    return _failed(observation, Failure.CRASH, how)


def _memory_note(problem: Problem) -> str:
    return f" (memory limit {problem.limits.memory_bytes >> 20} MiB)"


def _score(
    problem: Problem, stage: Stage, outputs: list[Outputs], observation: Observation
) -> Evaluation:
    try:
        metrics = {str(k): float(v) for k, v in stage.score(outputs).items()}
        score = metrics["score"]
    except Rejected as error:
        return _failed(observation, Failure.REJECTED, str(error))
    except BaseException as error:  # a bug of the problem must not stop the run
        _log.exception("the evaluator of %s failed", problem.name)
        return _failed(observation, Failure.ERROR, f"evaluator: {type(error).__name__}: {error}")
    if not math.isfinite(score):
        return _failed(observation, Failure.ERROR, f"evaluator: the score is {score}")
    return Evaluation(
        score=score,
        failure=None,
        metrics=metrics,
        artifacts=_artifacts(stdout=_printed(observation)),
        seconds=sum(observation.seconds),
        peak_bytes=observation.peak_bytes,
    )


def _failed(
    observation: Observation, failure: Failure, message: str, traceback: str = ""
) -> Evaluation:
    return Evaluation(
        score=None,
        failure=failure,
        message=_one_line(message),
        artifacts=_artifacts(stdout=_printed(observation), traceback=traceback),
        seconds=sum(observation.seconds),
        peak_bytes=observation.peak_bytes,
    )


def _printed(observation: Observation) -> str:
    return observation.output.decode(errors="replace")


def _one_line(text: str) -> str:
    return _printable(" ".join(text.split()))[:_MESSAGE_CHARACTERS]


def _artifacts(**texts: str) -> dict[str, str]:
    return {
        name: _printable(text)[-_ARTIFACT_CHARACTERS:]
        for name, text in texts.items()
        if text.strip()
    }


def _printable(text: str) -> str:
    """Replace what could act on a terminal; the text is the program's."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
