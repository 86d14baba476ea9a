import numpy as np
from scipy.optimize import linprog

# All unknowns are one vector: 26 times x, then 26 times y, then 26 radii.
CIRCLES = 26
PLANE, SPACE = (CIRCLES, 2), (3, CIRCLES)
X, Y, R = np.eye(3 * CIRCLES).reshape(3, CIRCLES, 3 * CIRCLES)
FIRST, SECOND = np.triu_indices(CIRCLES, 1)
ACROSS, UP, RADII = X[FIRST] - X[SECOND], Y[FIRST] - Y[SECOND], R[FIRST] + R[SECOND]
WALLS = np.vstack([X - R, Y - R, -X - R, -Y - R])
SIDES = np.repeat([0.0, 0.0, 1.0, 1.0], CIRCLES)
DOWNHILL = -R.sum(axis=0)
TINY = 1e-12


def run_packing():
    """Improve shaken rows of circles by small linear programs; the best of a few tries."""
    rng = np.random.default_rng(0)
    tries = 5
    centers, radii = improve(rows(500, rng))
    for attempt in range(tries):
        some, sizes = improve(rows(5, rng) + rng.normal(0, 0.03, PLANE))
        if sizes.sum() > radii.sum():
            centers, radii = some, sizes
    return centers, radii, float(radii.sum())


def rows(count, rng):
    """Centers in so many rows, evenly spaced; by chance, which rows have a circle more."""
    row = np.arange(CIRCLES) * count // CIRCLES
    number = np.bincount(row)
    place = np.arange(CIRCLES) - np.cumsum(number)[row] + number[row]
    x, y = (place + 0.027) / number[row], (rng.permutation(count)[row] + 0.5) / count
    return np.column_stack([x, y])


def improve(centers):
    """Move centers by a step at most and fit the radii, as long as that helps; return both."""
    centers, radii = np.clip(centers, 0.02, 0.98), np.zeros(CIRCLES)
    step = 0.1
    while step > 1e-6:
        moved, grown = stepped(centers, radii, step)
        if grown.sum() > radii.sum() + 1e-7:
            centers, radii = moved, grown
        else:
            step = step * 0.4
    return centers, radii


def stepped(centers, radii, step):
    """Solve the problem with its distances made linear, centers moving by a step at most."""
    flat = np.concatenate([centers.T.ravel(), radii])
    dx, dy = ACROSS @ flat, UP @ flat
    distance = np.hypot(dx, dy) + TINY
    near = distance < 0.5
    directions = (ACROSS.T * dx + UP.T * dy) / distance
    slopes = np.vstack([WALLS, (directions.T - RADII)[near]])
    room = np.concatenate([WALLS @ flat + SIDES, (distance - RADII @ flat)[near]])
    limits = [(-step, step)] * (2 * CIRCLES) + [(-radius, 0.5) for radius in radii]
    found = linprog(DOWNHILL, -slopes, room, bounds=limits)
    return (centers, radii) if found.x is None else shrunk(flat + found.x)


def shrunk(flat):
    """Take the worst overlap from all radii, and a little more for rounding."""
    gaps = np.hypot(ACROSS @ flat, UP @ flat) - RADII @ flat
    excess = TINY - min(np.min(WALLS @ flat + SIDES), np.min(gaps), 0.0)
    x, y, radii = flat.reshape(SPACE)
    return np.column_stack([x, y]), np.maximum(radii - excess, 0.0)
