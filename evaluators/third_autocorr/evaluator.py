"""The ``third_autocorr`` problem: a small peak of abs(f*f), for f of any sign.

The program returns the heights of a step function on [-1/4, 1/4]; f*f lives on [-1/2, 1/2], which
is where the inequality takes its maximum, so all of it counts. The ratio is recomputed from the
heights alone; its formula and its error bound are in ``kernels.autocorrelation``. The absolute
value is taken before the maximum, as the inequality and OpenEvolve's evaluator have it.
AlphaEvolve's published check takes it after, and so misses negative peaks: its reference value
1.4556 is of max(f*f), and does not compare.

Heights of both signs may cancel in the integral, and then rounding decides the ratio. The public
evaluator refuses an integral under a fixed size, which depends on the unit of f; here a ratio is
refused whose error bound is too large, which does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.core import Case, Outputs, Rejected
from evaluators.first_autocorr.cases import MAX_ERROR, heights, metrics, step_function_case
from kernels.autocorrelation import peak_ratio


def cases() -> Sequence[Case]:
    """Return the one call ``run()``."""
    return [step_function_case()]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Return max abs(f*f) / (integral of f)^2 as ``score``, its relative error bound, and n.

    Raises:
        Rejected: positive and negative heights cancel so far that float64 does not tell the ratio,
            or all are 0.
    """
    f = heights(outputs)
    ratio = peak_ratio(f)
    if not ratio.error <= MAX_ERROR:
        raise Rejected(
            f"the integral of f is too close to 0: the ratio is known to a relative error of "
            f"{ratio.error:.3g} only, and {MAX_ERROR:g} is allowed; let fewer heights cancel"
        )
    return metrics(ratio, f)
