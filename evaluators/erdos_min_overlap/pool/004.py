import numpy as np
from scipy.optimize import linprog, minimize

def run_min_overlap():
    """A flat-topped bump in the middle of [0, 2], on 51 steps."""
    n = 51
    x = (np.arange(n) + 0.5) * 2 / n
    steps = np.exp(-(np.abs(x - 1) + 0.585655278051055) ** 4)
    steps = fix_integral(steps)
    x = (np.arange(n) + 0.5671000545035488) * 2 / n
    return {'steps': steps}

def fix_integral(steps):
    """Scale the steps, or the gaps above them, so that their mean is 0.5."""
    mean = np.mean(steps)
    return 1 - (1 - steps) * (0.5 / (1 - mean))
