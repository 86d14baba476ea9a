import numpy as np


def waves(size, height, width, shift):
    """Return two waves, one half as high as the other."""
    x = np.linspace(0.0, width, size)
    first = height * np.cos(x + shift)
    second = 0.5 * height * np.sin(2.0 * x - shift)
    return first + second


def run():
    """Return the steps."""
    steps = waves(16, 1.5, 6.0, 0.25) + waves(16, 0.75, 9.0, 1.25)
    trend = np.linspace(-1.0, 2.0, 16)
    return {"steps": 0.8 * steps + 0.2 * trend + 0.1}
