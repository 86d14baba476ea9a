"""The ``uncertainty`` problem: a Hermite polynomial whose last sign change comes early.

The score is recomputed from the coefficients in exact arithmetic (``kernels.uncertainty``) and is
an upper bound on the constant C_4, roundings included. The public evaluators score the value that
a program reports, or look for roots in floating point, where a root can be missed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from engine.core import ArraySpec, Case, Outputs, Rejected
from kernels.rounding import round_up
from kernels.uncertainty import MAX_COEFFICIENTS, sign_uncertainty


def cases() -> Sequence[Case]:
    """Return the one call ``run_uncertainty()``; the program chooses the number of coefficients."""
    outputs = {"coefficients": ArraySpec(shape=(range(1, MAX_COEFFICIENTS + 1),))}
    return [Case(name="polynomial", args=(), outputs=outputs)]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Score the polynomial.

    Returns:
        ``score``: r_max^2 / (2 pi), rounded up; ``r_max``: where the last sign change is, with an
        error of a few units in the last place; ``n_coefficients``: their number.

    Raises:
        Rejected: the polynomial is zero, or may change its sign at x^2 above 2^64.
    """
    (output,) = outputs
    coefficients = np.asarray(output["coefficients"], dtype=np.float64)
    try:
        square, bound = sign_uncertainty(coefficients.tolist())
    except ValueError as error:
        raise Rejected(f"{error} (coefficients {_shown(coefficients.tolist())})") from error
    return {
        "score": round_up(bound),
        "r_max": math.sqrt(round_up(square)),
        "n_coefficients": float(coefficients.size),
    }


def _shown(values: Sequence[float]) -> str:
    shown = ", ".join(f"{value:.6g}" for value in values[:4])
    return f"[{shown}, ...]" if len(values) > 4 else f"[{shown}]"
