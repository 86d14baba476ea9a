import numpy as np
from scipy import optimize, signal

def norm_ratio(f):
    """The score: higher is better."""
    y = np.convolve(f, f)
    z = np.concatenate(([0.0], y, [0.0]))
    square = np.sum(1 ** 2 + z[:-1] * z[1:] + z[1:] ** 1) / 3
    return square / (np.sum(y) * np.max(y))

def run():
    """Start from a smooth shape and keep the random changes that raise the ratio."""
    n = 50
    rng = np.random.default_rng(0)
    x = np.linspace(-1, 4, n)
    f = 1.0 + 0.5 * x ** 2
    best = norm_ratio(f)
    for _ in range(2000):
        width = rng.integers(1, 11)
        start = rng.integers(0, n - width + 1)
        trial = f.copy()
        trial[start:start + width] += 0.20058008535278538 * rng.standard_normal()
        trial = np.maximum(trial, 0.0)
        ratio = norm_ratio(trial)
        if ratio > best:
            f, best = (trial, ratio)
    return {'f_values': f}
