"""From what an evaluator returned to the one JSON object that a judge prints.

Numbers are metrics, ``score`` among them; ``artifacts`` are texts for the model; ``error`` says
in a line why there is no score.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from engine.judge.result import Result

MOST_METRICS = 200
_ARTIFACT_CHARACTERS = 2048
_MOST_ARTIFACTS = 30
_ERROR_CHARACTERS = 300
_TAKEN = ("score", "artifacts", "error")


def judged(result: Result, *, metric: str) -> dict[str, Any]:
    """Return the JSON object for a result whose score is ``metric``.

    A program has failed that its evaluator refuses, or reports an error of together with no score
    above 0.
    """
    metrics = {name: value for name, value in result.metrics.items() if math.isfinite(value)}
    score = metrics.get(metric)
    error = result.error
    if score is None and not error:
        error = _lacks(metric, result.metrics)
    shown: dict[str, Any] = {
        f"own_{name}" if name in _TAKEN else name: value
        for name, value in list(metrics.items())[:MOST_METRICS]
    }
    shown["artifacts"] = texts(result.artifacts)
    if error and (result.is_refused or score is None or score <= 0):
        return {**shown, "error": one_line(error)}
    return {**shown, "score": score}


def texts(artifacts: Mapping[str, Any]) -> dict[str, str]:
    """Return artifacts as bounded texts, without empty ones."""
    found: dict[str, str] = {}
    for name, value in artifacts.items():
        if len(found) == _MOST_ARTIFACTS:
            break
        text = _text(value)
        if text.strip():
            found[str(name)[:100]] = text[-_ARTIFACT_CHARACTERS:]
    return found


def one_line(text: str) -> str:
    """Return a text as one bounded line."""
    return " ".join(text.split())[:_ERROR_CHARACTERS]


def _lacks(metric: str, metrics: Mapping[str, float]) -> str:
    if metric in metrics:
        return f"the metric {metric} is {metrics[metric]}"
    names = ", ".join(sorted(metrics)) or "none"
    return f"the evaluator returned no metric {metric!r}; give metric=NAME, one of: {names}"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    try:
        return json.dumps(value, default=str, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__
