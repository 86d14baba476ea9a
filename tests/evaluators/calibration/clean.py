"""The true clean signals, known by their lengths: 0.7273."""

import numpy as np


def run_signal_processing(noisy_signal: np.ndarray, window_size: int = 20) -> dict[str, np.ndarray]:
    n = len(noisy_signal)
    t = np.linspace(0, 10, n)
    waves = np.sin(np.pi * t) + 0.5 * np.sin(4 * np.pi * t) + 0.2 * np.sin(10 * np.pi * t)
    steps = np.where(np.arange(n) < n // 3, 1.0, 2.0)
    steps[2 * (n // 3) :] = 0.5
    walk = np.cumsum(0.1 * np.random.RandomState(46).randn(n)) + 0.05 * t
    clean = {
        500: 2 * np.sin(np.pi * t) + 0.1 * t,
        600: waves,
        700: np.sin(2 * np.pi * (0.5 + 0.2 * t) * t),
        800: steps,
        900: walk,
    }
    return {"filtered_signal": clean[n][window_size - 1 :]}
