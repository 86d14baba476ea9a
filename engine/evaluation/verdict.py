"""From what a worker saw to the verdict on a program; the only place where scores are made.

The scorer gets nothing but arrays that were checked here against the problem's contract.
"""

from __future__ import annotations

import logging
import math
import re
import signal

from engine.core import Case, Evaluation, Failure, Outputs, Problem, Rejected
from engine.evaluation.contract import ContractError, unpack
from engine.evaluation.wire import RAISED, RETURNED, Ended, Observation

_MESSAGE_CHARACTERS = 300
_ARTIFACT_CHARACTERS = 2048
# What C++, OpenBLAS and LLVM print when they end a process because an allocation failed.
_OUT_OF_MEMORY = re.compile(r"bad_alloc|out of memory|memory allocation", re.IGNORECASE)

_log = logging.getLogger(__name__)


def judge(problem: Problem, observation: Observation) -> Evaluation:
    """Return the verdict on the program of which ``observation`` is what a worker saw."""
    failed = _failure(problem, observation)
    if failed is not None:
        return failed
    outputs: list[Outputs] = []
    try:
        for result, cases in zip(observation.results, _cases_by_process(problem), strict=True):
            outputs += unpack(result[len(RETURNED) :], cases)
    except ContractError as error:
        return _failed(observation, Failure.OUTPUT, str(error))
    return _score(problem, outputs, observation)


def failed_evaluation(failure: Failure, message: str, *, seconds: float = 0.0) -> Evaluation:
    """Return the verdict on a program of whose run nothing is known."""
    return Evaluation(score=None, failure=failure, message=_one_line(message), seconds=seconds)


def timeout_message(problem: Problem) -> str:
    """Return the message for a program that ran past the time limit of ``problem``."""
    return f"ran longer than the limit of {problem.limits.seconds:g} s"


def _failure(problem: Problem, observation: Observation) -> Evaluation | None:
    """Return the verdict if the run itself failed, None if it ended with results to check."""
    last = observation.results[-1] if observation.results else b""
    if observation.ended is Ended.DEADLINE:
        return _failed(observation, Failure.TIMEOUT, timeout_message(problem))
    if observation.ended is Ended.OVERSIZE:
        return _failed(observation, Failure.OUTPUT, "the result is larger than its contract")
    if last.startswith(RAISED):
        return _raised(problem, observation, last)
    if observation.exit_code != 0 or not last:
        return _died(problem, observation)
    if len(observation.results) != len(_cases_by_process(problem)) or not all(
        result.startswith(RETURNED) for result in observation.results
    ):
        return _failed(observation, Failure.OUTPUT, "the result is malformed")
    return None


def _cases_by_process(problem: Problem) -> list[tuple[Case, ...]]:
    if problem.isolate_cases:
        return [(case,) for case in problem.cases]
    return [problem.cases]


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
    if code != 0 and _OUT_OF_MEMORY.search(observation.output):
        return _failed(observation, Failure.MEMORY, how + _memory_note(problem))
    return _failed(observation, Failure.CRASH, how)


def _memory_note(problem: Problem) -> str:
    return f" (memory limit {problem.limits.memory_bytes >> 20} MiB)"


def _score(problem: Problem, outputs: list[Outputs], observation: Observation) -> Evaluation:
    try:
        metrics = {str(k): float(v) for k, v in problem.score(outputs).items()}
        score = metrics["score"]
    except Rejected as error:
        return _failed(observation, Failure.REJECTED, str(error))
    except Exception as error:  # a bug of the problem must not stop the run
        _log.exception("the evaluator of %s failed", problem.name)
        return _failed(observation, Failure.ERROR, f"evaluator: {type(error).__name__}: {error}")
    if not math.isfinite(score):
        return _failed(observation, Failure.ERROR, f"evaluator: the score is {score}")
    return Evaluation(
        score=score,
        failure=None,
        metrics=metrics,
        artifacts=_artifacts(stdout=observation.output),
        seconds=observation.seconds,
        peak_bytes=observation.peak_bytes,
    )


def _failed(
    observation: Observation, failure: Failure, message: str, traceback: str = ""
) -> Evaluation:
    return Evaluation(
        score=None,
        failure=failure,
        message=_one_line(message),
        artifacts=_artifacts(stdout=observation.output, traceback=traceback),
        seconds=observation.seconds,
        peak_bytes=observation.peak_bytes,
    )


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
