"""A plain NumPy version of ``kernels.uncertainty``, which the tests hold that one against.

Roots from the eigenvalues of the companion matrix, sign changes from sampled signs between them:
good to about 1e-6 for a few coefficients whose roots lie apart. Not for use in scoring.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.polynomial import Polynomial, hermite


def sign_uncertainty(coefficients: Sequence[float]) -> tuple[float, float]:
    """Return r_max^2 and r_max^2 / (2 pi); see `kernels.uncertainty.sign_uncertainty`."""
    p = polynomial(coefficients)
    roots = p.roots()
    near_real = np.abs(roots.imag) < 1e-6 * np.maximum(1.0, np.abs(roots))
    places = np.sort(roots.real[near_real & (roots.real > 1e-3)])
    between = np.concatenate([[places[0] / 2], (places[1:] + places[:-1]) / 2, [places[-1] * 2]])
    signs = np.sign(p(between))
    r_max = places[signs[1:] != signs[:-1]][-1]
    return float(r_max**2), float(r_max**2 / (2 * np.pi))


def polynomial(coefficients: Sequence[float]) -> Polynomial:
    """Return P, with the last coefficient from P(0) = 0; its sign may be either."""
    m = len(coefficients)
    series = np.zeros(4 * m + 1)
    series[0 : 4 * m : 4] = coefficients
    at_zero = hermite.hermval(0.0, series)
    series[4 * m] = -at_zero / hermite.hermval(0.0, [0] * (4 * m) + [1])
    return Polynomial(hermite.herm2poly(series))
