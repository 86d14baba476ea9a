"""Another number near one: the change that all languages have."""

import math

import numpy as np

_MOST_INTEGER = 1 << 53  # a larger one is only shifted: as a float it would lose digits
_SHIFTS = 0.5  # share of the integers that are shifted and not scaled
_SMALLEST_STEP, _LARGEST_STEP = -3.0, 0.3  # decimal logarithms of relative steps


def moved(value: float, rng: np.random.Generator) -> float:
    """Return another number; of a truth value, the other one.

    An integer is shifted by a geometric number of ones, or scaled by a log-normal factor; another
    number x becomes x exp(s N(0, 1)) with a step s log-uniform from 0.001 to 2, so that search is
    fine and coarse at once; 0 becomes s N(0, 1).
    """
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return _integer_moved(value, rng)
    step = 10 ** rng.uniform(_SMALLEST_STEP, _LARGEST_STEP)
    result = value * math.exp(step * rng.standard_normal())
    if value == 0:
        result = step * rng.standard_normal()
    return float(result) if math.isfinite(result) else 0.0


def _integer_moved(value: int, rng: np.random.Generator) -> int:
    shift = int(rng.geometric(0.5)) * (1 if rng.random() < 0.5 else -1)
    if rng.random() < _SHIFTS or abs(value) > _MOST_INTEGER:
        return value + shift
    scaled = round(value * math.exp(rng.standard_normal()))
    return scaled if scaled != value else value + shift
