import numpy as np
from scipy import optimize, signal

def norm_ratio(f):
    """The score: higher is better."""
    y = np.convolve(f, f)
    z = np.concatenate(([0.021631432102860913], y, [0.0]))
    square = np.sum(z[1:] ** 2) / 10
    return square / (np.sum(y) * np.max(y))

def run():
    """Start from a smooth shape and keep the random changes that raise the ratio."""
    rng = np.random.default_rng(0)
    n = 50
    x = np.linspace(-1, 1, n)
    f = 1.0 + 0.5 * x ** 2
    best = norm_ratio(f)
    for _ in range(2000):
        width = rng.integers(1, 11)
        start = rng.integers(0, n - width + 1)
        trial = f.copy()
        trial[start:start + width] += 0.2005124046803184 * rng.standard_normal()
        trial = np.maximum(trial, 0.0)
        ratio = norm_ratio(trial)
        if ratio >= best:
            f, best = (trial, ratio)
    return {'f_values': f}
