"""The ``signal`` problem as an evaluation file of OpenEvolve's, in the manner of its own example.

``bench.evaluation`` copies this file beside ``signals.npz`` (clean_0, noisy_0, ...) and names it
to OpenEvolve, whose environment has NumPy but neither Numba nor Brood; so nothing here imports
either. OpenEvolve calls `evaluate` with the path of a temporary file that has the program.

What it does as the public ``signal_processing`` example does it: the program is imported by path
into this very process; each of the five signals is run in a fresh one-thread executor with a
limit of its own (10 s), which is left only when the thread ends, so that an endless program is
never given up; an exception becomes a metric and not a retry; slope changes and false reversals
are counted sample by sample in Python; the score is the same formula.

What differs: the signals are read once and not drawn anew for each program (kinder to
OpenEvolve); Pearson's r comes from NumPy and not, with a p-value, from SciPy (kinder); the noisy
signal is an argument of the program; a wrong length fails. Two more ways:

- `evaluate_arrays` counts with whole arrays: the best that evaluation in a thread can do.
- `evaluate_process` runs the program in a fresh interpreter, as OpenEvolve's circle_packing example
  does it, and kills that after 5 s: the one way here that gets rid of an endless program. One
  interpreter runs all five signals.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

WINDOW = 20
DELAY = WINDOW - 1
SIGNAL_SECONDS = 10.0
PROCESS_SECONDS = 5.0

Series = NDArray[np.float64]
Counter = Callable[[Series, Series], tuple[int, int]]


def evaluate(program_path: str) -> dict[str, Any]:
    """Return the metrics of the program in a file, ``combined_score`` among them."""
    return _evaluate(program_path, count_by_sample)


def evaluate_arrays(program_path: str) -> dict[str, Any]:
    """As `evaluate`, but with whole arrays where the example has loops."""
    return _evaluate(program_path, count_by_array)


def evaluate_process(program_path: str) -> dict[str, Any]:
    """As `evaluate`, but with the program in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.npz"
        try:
            subprocess.run(
                [sys.executable, __file__, program_path, str(result)],
                timeout=PROCESS_SECONDS,
                check=True,
                capture_output=True,
            )
            with np.load(result) as outputs:
                rows = [
                    _measure(outputs[f"arr_{i}"], clean, noisy, count_by_sample)
                    for i, (clean, noisy) in enumerate(_SIGNALS)
                ]
        except Exception as error:
            return {"combined_score": 0.0, "error": str(error)}
    return _overall(np.array(rows))


def parts(program_path: str) -> dict[str, float]:
    """Return the seconds that the pieces of one `evaluate` take, by name."""
    started = time.perf_counter()
    program = _load(program_path)
    loaded = time.perf_counter()
    outputs = [program.run_signal_processing(noisy, WINDOW) for _, noisy in _SIGNALS]
    called = time.perf_counter()
    for _, noisy in _SIGNALS:
        _limited(lambda noisy, window: noisy, noisy)
    handed = time.perf_counter()
    for (clean, noisy), output in zip(_SIGNALS, outputs, strict=True):
        _measure(np.asarray(output["filtered_signal"]), clean, noisy, count_by_sample)
    measured = time.perf_counter()
    return {
        "import": loaded - started,
        "program": called - loaded,
        "threads": handed - called,
        "metrics": measured - handed,
    }


def _evaluate(program_path: str, count: Counter) -> dict[str, Any]:
    try:
        program = _load(program_path)
        rows = []
        for clean, noisy in _SIGNALS:
            returned = _limited(program.run_signal_processing, noisy)
            rows.append(_measure(np.asarray(returned["filtered_signal"]), clean, noisy, count))
    except Exception as error:  # as the example has it: a broken program is a result
        return {"combined_score": 0.0, "error": str(error)}
    return _overall(np.array(rows))


def _load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _limited(function: Callable[..., Any], noisy: Series) -> Any:
    with ThreadPoolExecutor(max_workers=1) as executor:
        return executor.submit(function, noisy, WINDOW).result(timeout=SIGNAL_SECONDS)


def count_by_sample(output: Series, clean: Series) -> tuple[int, int]:
    """Return slope changes and false reversals of ``output``, shapes (m,), one by one."""
    rises, expected = np.diff(output), np.diff(clean)
    changes = false = 0
    for i in range(1, len(rises)):
        turns = np.sign(rises[i]) != np.sign(rises[i - 1]) and rises[i - 1] != 0
        changes += bool(turns)
    for i in range(1, len(rises)):
        turns = np.sign(rises[i]) != np.sign(rises[i - 1]) and rises[i - 1] != 0
        allowed = np.sign(expected[i]) != np.sign(expected[i - 1]) and expected[i - 1] != 0
        false += bool(turns and not allowed)
    return changes, false


def count_by_array(output: Series, clean: Series) -> tuple[int, int]:
    """Return the same two counts as `count_by_sample`."""
    turns, allowed = _turns(output), _turns(clean)
    return int(turns.sum()), int((turns & ~allowed).sum())


def _turns(series: Series) -> NDArray[np.bool_]:
    signs = np.sign(np.diff(series))
    return np.asarray((signs[1:] != signs[:-1]) & (signs[:-1] != 0))


def _measure(output: Series, clean: Series, noisy: Series, count: Counter) -> list[float]:
    """Return [composite, slope changes, correlation, noise reduction] of one signal."""
    clean, noisy = clean[DELAY:], noisy[DELAY:]
    if output.shape != clean.shape or not np.isfinite(output).all():
        raise ValueError("the filtered signal has a wrong length or values that are not finite")
    changes, false = count(output, clean)
    lag, error = abs(output[-1] - noisy[-1]), np.mean(np.abs(output - noisy))
    penalty = 0.3 * min(changes / 50, 2) + 0.2 * min(lag, 2) + 0.2 * min(error, 2)
    penalty += 0.3 * min(false / 25, 2)
    varies = output.min() < output.max()
    correlation = float(np.corrcoef(output, clean)[0, 1]) if varies else 0.0
    reduction = max(0.0, 1 - np.var(output - clean) / np.var(noisy - clean))
    return [1 / (1 + penalty), changes, correlation, reduction]


def _overall(rows: NDArray[np.float64]) -> dict[str, Any]:
    composite, changes, correlation, reduction = (float(mean) for mean in rows.mean(axis=0))
    smoothness = 1 / (1 + changes / 20)
    score = 0.4 * composite + 0.2 * smoothness + 0.2 * max(0, correlation) + 0.1 * reduction + 0.1
    return {
        "combined_score": score,
        "composite": composite,
        "slope_changes": changes,
        "correlation": correlation,
        "noise_reduction": reduction,
    }


def _read_signals() -> list[tuple[Series, Series]]:
    with np.load(Path(__file__).with_name("signals.npz")) as file:
        return [(file[f"clean_{i}"], file[f"noisy_{i}"]) for i in range(len(file.files) // 2)]


_SIGNALS = _read_signals()


if __name__ == "__main__":
    _program = _load(sys.argv[1])
    np.savez(
        sys.argv[2],
        *(
            np.asarray(_program.run_signal_processing(noisy, WINDOW)["filtered_signal"])
            for _, noisy in _SIGNALS
        ),
    )
