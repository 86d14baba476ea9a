import math

import numpy as np
from scipy.optimize import minimize


def run_uncertainty():
    """Start with two free coefficients."""
    return improve(np.array([1.0, 0.0]), effort=1, seed=0)


def improve(coefficients, effort, seed):
    """Keep the random changes, small and large, that lower the bound."""
    rng = np.random.default_rng(seed)
    best = estimate_bound(coefficients)
    for _ in range(200 * effort):
        size = 10 ** rng.uniform(-6, -1)
        change = size * rng.standard_normal(len(coefficients)) / hermite_at_zero(len(coefficients))
        trial = coefficients + abs(coefficients[0]) * change
        bound = estimate_bound(trial)
        if bound < best:
            coefficients, best = trial, bound
    return {"coefficients": coefficients}


def perturb(coefficients, intensity, seed):
    """Shake the coefficients; at full intensity free a few more in place of that, up to 16."""
    rng = np.random.default_rng(seed)
    if intensity < 1 or len(coefficients) >= 16:
        return (coefficients * (1 + 0.1 * intensity * rng.standard_normal(len(coefficients))),)
    for _ in range(min(rng.integers(1, 5), 16 - len(coefficients))):
        share = 1 - 10 ** rng.uniform(-3, 0)
        coefficients = np.append(coefficients, share * last_coefficient(coefficients))
    return (coefficients,)


def hermite_at_zero(n):
    """H_4k(0) = (4k)! / (2k)! for k below n."""
    return np.array([math.factorial(4 * k) / math.factorial(2 * k) for k in range(n)])


def last_coefficient(coefficients):
    """The one that makes P(0) = 0."""
    at_zero = hermite_at_zero(len(coefficients) + 1)
    return -np.dot(coefficients, at_zero[:-1]) / at_zero[-1]


def estimate_bound(coefficients):
    """Estimate r_max^2 / (2 pi) from the roots of P, a polynomial in x^2, in floating point."""
    series = np.zeros(4 * len(coefficients) + 1)
    series[::4] = np.append(coefficients, last_coefficient(coefficients))
    roots = np.roots(np.polynomial.hermite.herm2poly(series)[::-2])
    positive = roots.real[(np.abs(roots.imag) < 1e-6) & (roots.real > 1e-6)]
    return np.max(positive, initial=0.0) / (2 * np.pi) if len(positive) else math.inf
