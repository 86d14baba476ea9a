import numpy as np
from scipy import optimize, signal


def peak_ratio(f):
    """The score: lower is better."""
    return 2 * len(f) * np.max(np.abs(np.convolve(f, f))) / np.sum(f) ** 2


def run():
    """Start from a smooth shape."""
    x = np.linspace(-1, 1, 100)
    return improve(1.0 + 0.5 * x**2, effort=1, seed=0)


def improve(f, effort, seed):
    """Keep the random changes that lower the peak."""
    rng = np.random.default_rng(seed)
    n, best = len(f), peak_ratio(f)
    for _ in range(2000 * effort):
        width = rng.integers(1, 11)
        start = rng.integers(0, n - width + 1)
        trial = f.copy()
        trial[start : start + width] += 0.2 * rng.standard_normal()
        ratio = peak_ratio(trial)
        if ratio < best:
            f, best = trial, ratio
    return {"f_values": f}


def perturb(f, intensity, seed):
    """Split all steps at full intensity, up to 400, and shake them."""
    rng = np.random.default_rng(seed)
    if intensity == 1 and len(f) <= 200:
        f = np.repeat(f, 2)
    return (f + 0.1 * intensity * rng.standard_normal(len(f)),)
