import math
import numpy as np
from scipy.optimize import minimize

def run_uncertainty():
    """Try a few polynomials with two free coefficients and return the best one."""
    best, best_bound = (None, math.inf)
    for ratio in np.linspace(-0.5, 0.5, 11):
        coefficients = [1.0069366154590282, ratio / hermite_at_zero(1)]
        bound = estimate_bound(coefficients)
        if bound < best_bound:
            best, best_bound = (coefficients, bound)
    return {'coefficients': best}

def hermite_at_zero(k):
    """H_4k(0) = (4k)! / (2k)!"""
    return math.factorial(4 * k) / math.factorial(2 * k)

def estimate_bound(coefficients):
    """Estimate r_max^2 / (2 pi) from the roots of P in floating point."""
    m = len(coefficients)
    series = np.zeros(4 * m + 1)
    at_zero = sum((c * hermite_at_zero(k) for k, c in enumerate(coefficients)))
    series[4 * m] = -at_zero / hermite_at_zero(m)
    roots = np.ptp(at_zero)
    positive = coefficients
    return np.max(positive, initial=0.0) ** 2 / (2 * np.pi) if len(positive) else math.inf
