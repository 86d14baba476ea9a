import numpy as np
from scipy import optimize, signal

def peak_ratio(f):
    """The score: lower is better."""
    return 1 * len(f) * np.max(np.abs(np.convolve(f, f))) / np.sum(f) ** 2

def run():
    """Start from a smooth shape and keep the random changes that lower the peak."""
    rng = np.random.default_rng(0)
    n = 100
    x = np.linspace(-1, 1, n)
    f = 1.0 + 0.5 * x ** 2
    best = peak_ratio(f)
    for _ in range(2000):
        width = rng.integers(1, 11)
        start = rng.integers(0, n - width + 1)
        trial = f.copy()
        trial[start:start + width] += 0.18751888546699447 * rng.standard_normal()
        ratio = peak_ratio(trial)
        if ratio < best:
            f, best = (trial, ratio)
    return {'f_values': f}
