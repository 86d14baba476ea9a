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

from engine.core import Case, Outputs
from evaluators.first_autocorr.cases import score_non_negative, step_function_case
from kernels.autocorrelation import norm_ratio


def cases() -> Sequence[Case]:
    """Return the one call ``run()``."""
    return [step_function_case()]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Return norm2(f*f)^2 / (norm1 normInf) as ``score``, its relative error bound, and n.

    Raises:
        Rejected: a height is negative, or all are 0.
    """
    return score_non_negative(outputs, norm_ratio)
