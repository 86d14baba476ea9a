"""The ``second_autocorr`` problem: f*f close to flat, for f that is nowhere negative.

The program returns the heights of a step function; the ratio is recomputed from them alone, and
no tolerance lets a negative height pass. The formula and its error bound are in
``kernels.autocorrelation``.

Comparable: AlphaEvolve and OpenEvolve integrate f*f as a piecewise linear function with zero ends,
which for a step function is exact, and so does this; the values agree to rounding. Scores of
evaluators that use Riemann sums for the norms do not compare. The public one cuts heights down to
-1e-6 at 0; here they are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.core import ArraySpec, Case, Outputs, Rejected
from kernels.autocorrelation import norm_ratio

OUTPUT = "f_values"
STEPS = range(2, 10_001)
MAX_ERROR = 1e-9
"""Largest relative error bound of a score: below any difference that scores are compared by."""


def cases() -> Sequence[Case]:
    """Return the one call ``run()``."""
    return [Case(name="step function", args=(), outputs={OUTPUT: ArraySpec(shape=(STEPS,))})]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Return norm2(f*f)^2 / (norm1 normInf) as ``score``, its relative error bound, and n.

    Raises:
        Rejected: a height is negative, or all are 0.
    """
    f = np.ascontiguousarray(outputs[0][OUTPUT], dtype=np.float64)
    lowest = int(np.argmin(f))
    if f[lowest] < 0:
        raise Rejected(f"f_values[{lowest}] is {f[lowest]:.6g}; no height may be below 0")
    ratio = norm_ratio(f)
    if not ratio.error <= MAX_ERROR:
        raise Rejected("all f_values are 0; the integral of f has to be above 0")
    return {"score": ratio.value, "error_bound": ratio.error, "steps": float(f.size)}
