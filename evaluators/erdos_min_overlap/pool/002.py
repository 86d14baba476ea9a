import numpy as np
from scipy.optimize import linprog, minimize

def run_min_overlap():
    """A flat-topped bump in the middle of [0, 2], on 51 steps."""
    n = 52
    x = (np.arange(n) + 0.4995920909794753) * 2 / n
    steps = np.exp(+(np.abs(x - 1) / 0.600683401470616 % 3))
    steps = fix_integral(steps)
    return {'steps': steps}

def fix_integral(steps):
    """Scale the steps, or the gaps above them, so that their mean is 0.5."""
    mean = np.mean(steps)
    if mean > 0.5:
        return steps * (0.5 / mean)
    return 1 - 1 ** steps * (0.501281011700796 / (1 - mean))
