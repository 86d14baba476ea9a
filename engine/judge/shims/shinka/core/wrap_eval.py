"""``run_shinka_eval``: run a function of the program some times, validate, aggregate, write."""

import importlib.util
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def load_program(program_path: str) -> Any:
    """Return the program as a module."""
    spec = importlib.util.spec_from_file_location("program", program_path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{program_path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def save_json_results(
    results_dir: str, metrics: Mapping[str, Any], correct: bool, error: str | None = None
) -> None:
    """Write ``metrics.json`` and ``correct.json``."""
    folder = Path(results_dir)
    folder.mkdir(parents=True, exist_ok=True)
    verdict = {"correct": bool(correct), "error": error}
    for name, content in (("correct.json", verdict), ("metrics.json", dict(metrics))):
        (folder / name).write_text(json.dumps(content, default=_plain), encoding="utf-8")


def run_shinka_eval(
    program_path: str,
    results_dir: str,
    experiment_fn_name: str,
    num_runs: int,
    get_experiment_kwargs: Callable[[int], Mapping[str, Any]] | None = None,
    aggregate_metrics_fn: Callable[[list[Any]], dict[str, Any]] | None = None,
    validate_fn: Callable[[Any], Any] | None = None,
    default_metrics_on_error: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[dict[str, Any], bool, str | None]:
    """Evaluate a program as ShinkaEvolve does.

    Args:
        program_path: the program's file.
        results_dir: where to write.
        experiment_fn_name: the program's function to call.
        num_runs: how often.
        get_experiment_kwargs: from a run's number, from 0, to the function's arguments; without
            it the argument is ``seed``, from 1.
        aggregate_metrics_fn: from all results to the metrics.
        validate_fn: from a result to whether it is allowed, and why not.
        default_metrics_on_error: the metrics of a program that fails.
        options: of later versions: workers and plots, which change no score, and early stops:
            here all runs are made.

    Returns:
        The metrics, whether every result is allowed, and the first error.
    """
    results: list[Any] = []
    seconds: list[float] = []
    errors: list[str] = []
    invalid = 0
    try:
        function = getattr(load_program(program_path), experiment_fn_name)
        for number in range(num_runs):
            given = get_experiment_kwargs(number) if get_experiment_kwargs else {"seed": number + 1}
            began = time.perf_counter()
            results.append(function(**given))
            seconds.append(time.perf_counter() - began)
            is_valid, why = _validated(validate_fn, results[-1])
            if not is_valid:
                invalid += 1
                errors += [str(why)] if why and str(why) not in errors else []
        metrics = aggregate_metrics_fn(results) if aggregate_metrics_fn else _counted(results)
        metrics.pop("extra_data", None)
        metrics["execution_time_mean"] = float(np.mean(seconds)) if seconds else 0.0
        metrics["execution_time_std"] = float(np.std(seconds)) if seconds else 0.0
        if validate_fn is not None:
            metrics["num_valid_runs"] = len(results) - invalid
            metrics["num_invalid_runs"] = invalid
            metrics["all_validation_errors"] = errors
        is_correct = invalid == 0
        error = None if is_correct else f"Validation failed: {errors[0] if errors else 'no reason'}"
    except Exception as failure:
        metrics = dict(default_metrics_on_error or {"combined_score": 0.0})
        is_correct, error = False, f"{type(failure).__name__}: {failure}"
    save_json_results(results_dir, metrics, is_correct, error)
    return metrics, is_correct, error


def _validated(validate: Callable[[Any], Any] | None, result: Any) -> tuple[bool, Any]:
    if validate is None:
        return True, None
    said = validate(result)
    if isinstance(said, Sequence):
        return bool(said[0]), said[1] if len(said) > 1 else None
    return bool(said), None


def _counted(results: list[Any]) -> dict[str, Any]:
    return {"num_successful_runs": len(results)}


def _plain(value: Any) -> Any:
    """Return what JSON has a form for in place of a NumPy value."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)
