"""The ``erdos_min_overlap`` problem: a step function whose overlap with its complement is small.

The score is recomputed from the steps (``kernels.erdos_min_overlap``) and is an upper bound on
Erdos's constant, roundings included. Stricter than the public evaluators, which take the value
that a program reports (within 1e-4) for a function whose integral is off by up to 1e-3: here the
integral has to be 1 within 1e-6, and what it is off by is added to the score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.core import ArraySpec, Case, Outputs, Rejected
from kernels.erdos_min_overlap import certified_overlap, integral_excess

STEPS = range(2, 10_001)
TOLERANCE = 1e-6


def cases() -> Sequence[Case]:
    """Return the one call ``run_min_overlap()``; the program chooses the number of steps."""
    outputs = {"steps": ArraySpec(shape=(STEPS,))}
    return [Case(name="step function", args=(), outputs=outputs)]


def score(outputs: Sequence[Outputs]) -> Mapping[str, float]:
    """Score the step function.

    Returns:
        ``score``: the certified upper bound; ``integral_error``: how much the integral differs
        from 1, which the score contains; ``n_steps``: the number of steps.

    Raises:
        Rejected: a step lies outside [0, 1], or the integral is not 1 within 1e-6.
    """
    (output,) = outputs
    steps = np.ascontiguousarray(output["steps"], dtype=np.float64)
    outside = np.flatnonzero(~((steps >= 0) & (steps <= 1)))
    if outside.size:
        i = int(outside[0])
        raise Rejected(
            f"steps must be in [0, 1], but {outside.size} are not; the first is "
            f"steps[{i}] = {steps[i]:.6g}"
        )
    error = integral_excess(steps)
    if abs(error) > TOLERANCE:
        raise Rejected(
            f"the integral is {1 + error:.9g}, but must be 1: the mean of the steps must be 0.5, "
            f"and is {steps.mean():.9g}"
        )
    return {
        "score": certified_overlap(steps),
        "integral_error": abs(error),
        "n_steps": float(steps.size),
    }
