"""The ``first_autocorr`` problem: a small peak of f*f, for f that is nowhere negative.

The program returns the heights of a step function; the ratio is recomputed from them alone, and
no tolerance lets a negative height pass. The formula and its error bound are in
``kernels.autocorrelation``. Equal to the public evaluators' value for any array of 2 to 10,000
heights; they differ in believing the number of steps, and in cutting heights down to -1e-6 at 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.core import Case, Outputs
from kernels.autocorrelation import peak_ratio

from .cases import score_non_negative, step_function_case


def cases() -> Sequence[Case]:
    """Return the one call ``run()``."""
    return [step_function_case()]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Return max(f*f) / (integral of f)^2 as ``score``, its relative error bound, and n.

    Raises:
        Rejected: a height is negative, or all are 0.
    """
    return score_non_negative(outputs, peak_ratio)
