"""The ``*_autocorr`` problems: the call, the heights that come back, and their metrics.

The ratios themselves and their error bounds are in ``kernels.autocorrelation``. Does not cover what
`Rejected` says of heights that may be negative (``evaluators/third_autocorr``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from engine.core import ArraySpec, Case, Outputs, Rejected
from kernels.autocorrelation import Ratio, Series

OUTPUT = "f_values"
STEPS = range(2, 10_001)
MAX_ERROR = 1e-9
"""Largest relative error bound of a score: below any difference that scores are compared by."""


def step_function_case() -> Case:
    """Return the one call ``run()``."""
    return Case(name="step function", args=(), outputs={OUTPUT: ArraySpec(shape=(STEPS,))})


def heights(outputs: Sequence[Outputs]) -> Series:
    """Return the heights that the program returned, shape (n,)."""
    (output,) = outputs
    return np.ascontiguousarray(output[OUTPUT], dtype=np.float64)


def metrics(ratio: Ratio, f: Series) -> Mapping[str, float]:
    """Return the ratio as ``score``, its ``relative_error_bound``, and n as ``n_steps``."""
    return {
        "score": ratio.value,
        "relative_error_bound": ratio.error,
        "n_steps": float(f.size),
    }


def score_non_negative(
    outputs: Sequence[Outputs], ratio_of: Callable[[Series], Ratio]
) -> Mapping[str, float]:
    """Return the `metrics` of heights of which none may be negative, without any tolerance.

    Raises:
        Rejected: a height is negative, or all are 0.
    """
    f = heights(outputs)
    lowest = int(np.argmin(f))
    if f[lowest] < 0:
        raise Rejected(f"{OUTPUT}[{lowest}] is {f[lowest]:.6g}; no height may be below 0")
    ratio = ratio_of(f)
    if not ratio.error <= MAX_ERROR:
        raise Rejected(f"all {OUTPUT} are 0; the integral of f has to be above 0")
    return metrics(ratio, f)
