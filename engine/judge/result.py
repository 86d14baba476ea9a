"""What an evaluator returned: metrics, texts for the model, and why there is no score."""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.judge.proxies import Raised


class EvaluatorError(Exception):
    """The evaluator is not what its system's contract asks for; the text says so in a line."""


@dataclass(kw_only=True, slots=True)
class Result:
    """What an evaluator returned: metrics and texts as it named them, and why there is no score.

    Attributes:
        metrics: numbers by name.
        artifacts: anything else by name.
        error: why there is no score, or why there should be none.
        is_refused: whether there is none, whatever the metrics are.
    """

    metrics: dict[str, Any] = field(default_factory=dict)
    artifacts: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    is_refused: bool = False


def result_of(returned: Any) -> Result:
    """Return what is in a dict or in an ``EvaluationResult``; a dict may have both parts too.

    Raises:
        EvaluatorError: it is neither.
    """
    metrics = getattr(returned, "metrics", returned)
    artifacts = getattr(returned, "artifacts", None)
    if not isinstance(metrics, Mapping):
        kind = type(returned).__name__
        raise EvaluatorError(f"evaluate() returned {kind}, expected a dict or EvaluationResult")
    result = Result()
    inner = metrics.get("metrics")
    for given in (metrics, inner if isinstance(inner, Mapping) else {}):
        for name, value in given.items():
            if is_number(value):
                result.metrics[str(name)] = float(value)
            elif name not in ("metrics", "artifacts"):
                result.artifacts[str(name)] = value
    for each in (metrics.get("artifacts"), artifacts):
        if isinstance(each, Mapping):
            result.artifacts |= {str(name): value for name, value in each.items()}
    error = result.artifacts.get("error")
    if isinstance(error, str) and error.strip():
        result.error = error
    return result


def traceback_of(error: BaseException) -> str:
    """Return the last frames that led to an exception: the program's own, where that raised it."""
    if isinstance(error, Raised):
        return error.traceback
    return "".join(traceback.format_exception(error, limit=-6))


def is_number(value: object) -> bool:
    """Return whether a value counts as a metric."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "biuf"
    return isinstance(value, bool | int | float | np.number | np.bool_) and not isinstance(
        value, complex | np.complexfloating
    )
