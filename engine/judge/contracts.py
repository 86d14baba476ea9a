"""How each system calls its evaluator, and what that returns.

OpenEvolve and SkyDiscover: ``evaluate(path)`` of a module named ``evaluation_module``, or its
stages one after the other, each with a threshold. ShinkaEvolve, and containers of SkyDiscover:
``scripts``.

Source of the stages' rule: OpenEvolve's ``_cascade_evaluate``: metrics are merged, a stage is
passed with ``combined_score``, else with the mean of the numbers, and who does not pass keeps what
it has, as does who has a later stage raise an exception. Deviations: who has no score by then has
failed, where OpenEvolve takes the mean; so has who runs into the time limit, which all stages
share, and the program that is exempt and has any stage raise.
"""

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.judge.result import EvaluatorError, Result, result_of, traceback_of
from engine.judge.scripts import awaited, code_at_mount, run_printing, run_writing
from engine.judge.setup import Setup

MODULE = "evaluation_module"
SHIMS = Path(__file__).parent / "shims"


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
        return run_writing(setup, program)
    if setup.contract == "script":
        return run_printing(setup, program)
    module = _module(Path(setup.evaluator))
    merged = Result()
    last = len(setup.stages) - 1
    for number, (name, threshold) in enumerate(setup.stages):
        function = getattr(module, name, None)
        if not callable(function):
            raise EvaluatorError(f"{setup.evaluator} defines no function {name}")
        arguments = setup.arguments if name == "evaluate" else {}
        try:
            result = result_of(awaited(function(str(program), **arguments)))
        except Exception as error:
            if is_exempt or setup.metric not in merged.metrics:
                raise
            return _without(merged, name, error)
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


def _without(earlier: Result, stage: str, error: Exception) -> Result:
    """Return the result of the stages before one that raised, with OpenEvolve's words for that."""
    stage = stage.removeprefix("evaluate_")
    earlier.metrics[f"{stage}_passed"] = 0.0
    earlier.artifacts |= {
        "failure_stage": stage,
        f"{stage}_stderr": str(error),
        f"{stage}_traceback": traceback_of(error),
    }
    return earlier


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
    code = code_at_mount(path)
    if code is None:
        spec.loader.exec_module(module)
    else:
        exec(code, module.__dict__)
    return module


def _passing(metrics: Mapping[str, float]) -> float | None:
    if "combined_score" in metrics:
        return metrics["combined_score"]
    numbers = [value for name, value in metrics.items() if name != "error"]
    return sum(numbers) / len(numbers) if numbers else None
