"""The ``first_autocorr`` problem: a small peak of f*f, for f that is nowhere negative.

The program returns the heights of a step function; the ratio is recomputed from them alone, and
no tolerance lets a negative height pass. The formula and its error bound are in
``kernels.autocorrelation``. Equal to the public evaluators' value for any array of 2 to 10,000
heights; they differ in believing the number of steps, and in cutting heights down to -1e-6 at 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.core import ArraySpec, Case, Outputs, Rejected
from kernels.autocorrelation import peak_ratio

OUTPUT = "f_values"
STEPS = range(2, 10_001)
MAX_ERROR = 1e-9
"""Largest relative error bound of a score: below any difference that scores are compared by."""


def cases() -> Sequence[Case]:
    """Return the one call ``run()``."""
    return [Case(name="step function", args=(), outputs={OUTPUT: ArraySpec(shape=(STEPS,))})]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Return max(f*f) / (integral of f)^2 as ``score``, its relative error bound, and n.

    Raises:
        Rejected: a height is negative, or all are 0.
    """
    f = np.ascontiguousarray(outputs[0][OUTPUT], dtype=np.float64)
    lowest = int(np.argmin(f))
    if f[lowest] < 0:
        raise Rejected(f"f_values[{lowest}] is {f[lowest]:.6g}; no height may be below 0")
    ratio = peak_ratio(f)
    if not ratio.error <= MAX_ERROR:
        raise Rejected("all f_values are 0; the integral of f has to be above 0")
    return {"score": ratio.value, "error_bound": ratio.error, "steps": float(f.size)}
