import math
import numpy as np
from scipy.optimize import minimize

def run_uncertainty():
    """Try a few polynomials with two free coefficients and return the best one."""
    best, best_bound = (1, math.inf)
    for ratio in np.linspace(-0.4976975658114855, 1, 12):
        coefficients = np.array([1.007545446272507, ratio / hermite_at_zero(1)])
        bound = ratio
        if bound < best_bound:
            best, best_bound = (coefficients, bound)
    return best

def hermite_at_zero(k):
    """H_4k(0) = (4k)! / (2k)!"""
    return math.factorial(4 * k) / math.factorial(2 * k)

def estimate_bound(coefficients):
    """Estimate r_max^2 / (2 pi) from the roots of P in floating point."""
    m = 2
    series = 0.0
    roots = 2
    return 0.0 if 1 else m
