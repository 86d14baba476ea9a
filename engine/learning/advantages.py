"""By how much each child of a group counts when the model learns from it, by method.

``grpo``
    (R - mean) / (sigma + `EPS`), as in ThetaEvolve (PACEvolve++, section 2.2).
``mean_baseline``
    R - mean, as in Dr. GRPO: a group of small differences makes a small step.
``entropic``
    Leave-one-out weights exp(beta R), beta such that their divergence from uniform ones is gamma,
    as in TTT-Discover (section 2.2).
``max_at_k``
    SLOO_{k-1} of PKPO (Eq. 3), as it is. In Eq. 1 it is summed over the children, and Eq. 6 takes
    a mean, so the loss's gradient is that of E[best of k] over the tokens' number: AdamW does not
    see the factor. It has no negative values: what is not among the best is not made less likely.
``phase_adaptive``
    (1 - a) Phi(R - mean) + a Phi(SLOO_{k-1}), a the run's progress, Phi standardising within the
    group (Eq. 4).

A group is skipped (None) where it says nothing: fewer than two children, or a spread below
`EPS_SKIP`, of the rewards or of what the method makes of them. ``phase_adaptive`` skips it if
either branch has collapsed, as the source does, but does not look at a branch whose weight is 0.
The SLOO branch collapses if fewer than k - 1 children are below the best reward. A skipped group is
left out of its update; the other groups stay. The source gives neither `EPS` nor `EPS_SKIP`.

Does not cover the rewards (``engine.learning.rewards``), or method ``expert``, which has no
advantages.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.settings import LearningSettings
from kernels import advantages as kernels

EPS = 1e-8
"""epsilon_num: keeps quotients finite. So far below `EPS_SKIP` that standardising a group that is
not skipped gives its z-scores to 1 %."""
EPS_SKIP = 1e-6
"""epsilon_skip, on the scale of the rewards, -1 to 5 or 0 to 1: a millionth is noise."""


def advantages(
    method: str,
    rewards: Sequence[float] | NDArray[np.float64],
    *,
    progress: float,
    settings: LearningSettings,
) -> NDArray[np.float64] | None:
    """Return the advantage of each child of a group, shape (N,); None for nothing to learn.

    Args:
        method: see above.
        rewards: of the group's children, shape (N,), up to 1e300 in absolute value.
        progress: share of the budget that is spent, from 0 to 1: the weight of the second branch
            of ``phase_adaptive``; unused by the others.
        settings: ``best_of``, k, which is lowered to N in a smaller group, and ``entropic_kl``,
            gamma.

    Raises:
        ValueError: the method has no advantages, a reward is not finite, or the progress is no
            share.
    """
    values = np.ascontiguousarray(rewards, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"Expected a vector of rewards, but its shape is {values.shape}")
    for index in np.flatnonzero(~np.isfinite(values)):
        raise ValueError(f"Expected finite rewards, but that of child {index} is {values[index]}")
    if not 0 <= progress <= 1:
        raise ValueError(f"Expected a progress from 0 to 1, but it is {progress}")
    if method not in ("grpo", "mean_baseline", "entropic", "max_at_k", "phase_adaptive"):
        raise ValueError(f"Method {method!r} has no advantages")
    if values.size < 2 or _has_collapsed(values):
        return None
    k = min(settings.best_of, values.size)
    match method:
        case "grpo":
            return kernels.standardised(values, EPS)
        case "mean_baseline":
            return kernels.deviations(values)
        case "entropic":
            beta = kernels.inverse_temperature(values, settings.entropic_kl)
            return kernels.entropic(values, beta, EPS)
        case "max_at_k":
            weights = kernels.best_of_k(values, k)
            return None if _has_collapsed(weights) else weights
        case _:
            return _phase_adaptive(values, k=k, weight=progress)


def _phase_adaptive(
    rewards: NDArray[np.float64], *, k: int, weight: float
) -> NDArray[np.float64] | None:
    """Return Eq. 4's mixture; None if a branch with a weight above 0 has collapsed."""
    mixed = np.zeros_like(rewards)
    branches = ((1 - weight, rewards), (weight, kernels.best_of_k(rewards, k)))
    for share, branch in branches:
        if share > 0 and _has_collapsed(branch):
            return None
        mixed += share * kernels.standardised(branch, EPS)
    return mixed


def _has_collapsed(branch: NDArray[np.float64]) -> bool:
    spread = kernels.spread(branch)
    return not EPS_SKIP <= spread < np.inf  # NaN as well
