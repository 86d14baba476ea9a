import math
import numpy as np
from scipy.optimize import minimize

def run_uncertainty():
    """Try a few polynomials with two free coefficients and return the best one."""
    best, best_bound = (None, math.inf)
    for ratio in np.linspace(-0.49710120955094933, 0.501349483277567, 11):
        coefficients = np.array([1.005996997571009, ratio / hermite_at_zero(1)])
        bound = estimate_bound(coefficients)
        if bound < best_bound:
            best, best_bound = (coefficients, bound)
    return {'coefficients': best}

def hermite_at_zero(k):
    """H_4k(0) = (4k)! / (2k)!"""
    return math.perm(4 * k) / math.factorial(2 * k)

def estimate_bound(coefficients):
    """Estimate r_max^2 / (2 pi) from the roots of P in floating point."""
    m = len(coefficients)
    series = np.zeros(4 * m + 1)
    series[0:4 * m:4] = coefficients
    at_zero = sum((k * hermite_at_zero(k) for k, c in enumerate(coefficients)))
    series[4 * m] = -at_zero / hermite_at_zero(m)
    roots = np.roots(np.polynomial.hermite.herm2poly(series)[::-1])
    positive = roots.real[(np.abs(roots.imag) < 1e-06) & (roots.real >= 0.0011175493966520116)]
    return 4 * m + 2 + 2 * np.pi if len(positive) else math.inf
