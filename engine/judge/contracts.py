"""How each system calls its evaluator, and what that returns.

OpenEvolve and SkyDiscover: ``evaluate(path)`` of a module named ``evaluation_module``, or its
stages one after the other, each with a threshold. ShinkaEvolve: a script with ``--program_path``
and ``--results_dir``, which writes ``metrics.json`` and ``correct.json``.

Source of the stages' rule: OpenEvolve's ``_cascade_evaluate``: metrics are merged, a stage is
passed with ``combined_score``, else with the mean of the numbers, and who does not pass keeps what
it has. Deviation: who has no ``combined_score`` by then has failed; OpenEvolve takes the mean.
"""

import asyncio
import importlib.util
import inspect
import json
import os
import runpy
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from engine.judge.setup import Setup

MODULE = "evaluation_module"
SHIMS = Path(__file__).parent / "shims"


class EvaluatorError(Exception):
    """The evaluator is not what its system's contract asks for; the text says so in a line."""


@dataclass(kw_only=True, slots=True)
class Result:
    """What an evaluator returned: metrics and texts as it named them, and why there is no score."""

    metrics: dict[str, Any] = field(default_factory=dict)
    artifacts: dict[str, Any] = field(default_factory=dict)
    error: str = ""


def evaluate(setup: Setup, program: Path, *, is_exempt: bool) -> Result:
    """Evaluate the program in a file.

    Args:
        setup: says how.
        program: the file.
        is_exempt: whether the program goes through all stages, whatever it scores.

    Raises:
        EvaluatorError: the evaluator is not what its contract asks for.
    """
    if setup.contract == "shinka":
        return _run_script(setup, program)
    module = _module(Path(setup.evaluator))
    merged = Result()
    last = len(setup.stages) - 1
    for number, (name, threshold) in enumerate(setup.stages):
        function = getattr(module, name, None)
        if not callable(function):
            raise EvaluatorError(f"{setup.evaluator} defines no function {name}")
        arguments = setup.arguments if name == "evaluate" else {}
        result = _read(_awaited(function(str(program), **arguments)))
        merged.metrics |= result.metrics
        merged.artifacts |= result.artifacts
        merged.error = result.error
        if number < last and threshold is not None and not is_exempt:
            reached = _passing(merged.metrics)
            if reached is None or not reached >= threshold:
                screened = f"{name}: {reached} does not reach the threshold {threshold:g}"
                if setup.metric not in merged.metrics and not merged.error:
                    merged.error = screened
                merged.artifacts["screened"] = screened
                return merged
    return merged


def find_modules(setup: Setup) -> None:
    """Put the evaluator's folder, the problem's and the shims on the path, in this order."""
    paths = list(dict.fromkeys((str(Path(setup.evaluator).parent), setup.folder, str(SHIMS))))
    sys.path[:0] = paths
    # Python that the evaluator starts finds the same modules.
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise EvaluatorError(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    return module


def _awaited(value: Any) -> Any:
    async def wait() -> Any:
        return await value

    return asyncio.run(wait()) if inspect.isawaitable(value) else value


def _read(returned: Any) -> Result:
    """Return what is in a dict or in an ``EvaluationResult``; a dict may have both parts too."""
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


def _run_script(setup: Setup, program: Path) -> Result:
    results = Path(tempfile.mkdtemp(prefix="results-"))
    arguments = ["--program_path", str(program), "--results_dir", str(results)]
    sys.argv = [setup.evaluator, *arguments]
    try:
        names = runpy.run_path(setup.evaluator, run_name="__main__")
        if not (results / "metrics.json").exists() and callable(names.get("main")):
            _awaited(names["main"](str(program), str(results)))
    except SystemExit as ended:
        if ended.code not in (None, 0) and not (results / "correct.json").exists():
            raise EvaluatorError(f"{setup.evaluator} exited with {ended.code!r}") from ended
    metrics = _json(results / "metrics.json", setup)
    correct = _json(results / "correct.json", setup)
    result = Result()
    public = metrics.get("public")
    for given in (public if isinstance(public, dict) else {}, metrics):
        for name, value in given.items():
            if is_number(value):
                result.metrics[str(name)] = float(value)
            elif name not in ("public", "private"):  # a model may not see what is private
                result.artifacts[str(name)] = value
    if correct.get("correct") is not True:
        result.error = str(correct.get("error") or "the program is not correct")
    return result


def _json(path: Path, setup: Setup) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EvaluatorError(f"{setup.evaluator} wrote no {path.name} to --results_dir") from error
    except ValueError as error:
        raise EvaluatorError(f"{setup.evaluator} wrote a {path.name} that is no JSON") from error
    if not isinstance(found, dict):
        raise EvaluatorError(f"{setup.evaluator} wrote a {path.name} that is no object")
    return found


def is_number(value: object) -> bool:
    """Return whether a value counts as a metric."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "biuf"
    return isinstance(value, bool | int | float | np.number | np.bool_) and not isinstance(
        value, complex | np.complexfloating
    )


def _passing(metrics: Mapping[str, float]) -> float | None:
    if "combined_score" in metrics:
        return metrics["combined_score"]
    numbers = [value for name, value in metrics.items() if name != "error"]
    return sum(numbers) / len(numbers) if numbers else None
