import numpy as np
from scipy.optimize import minimize

# All unknowns are one vector: 26 times x, then 26 times y, then 26 radii.
CIRCLES = 26
PLANE, SPACE = (CIRCLES, 2), (3, CIRCLES)
X, Y, R = np.eye(3 * CIRCLES).reshape(3, CIRCLES, 3 * CIRCLES)
FIRST, SECOND = np.triu_indices(CIRCLES, 1)
ACROSS, UP, RADII = X[FIRST] - X[SECOND], Y[FIRST] - Y[SECOND], R[FIRST] + R[SECOND]
WALLS = np.vstack([X - R, Y - R, -X - R, -Y - R])
SIDES = np.repeat([0.0, 0.0, 1.0, 1.0], CIRCLES)
DOWNHILL = -R.sum(axis=0)
METHOD = {
    "method": "SLSQP",
    "bounds": [(0, 1)] * (3 * CIRCLES),
    "options": {"maxiter": 100, "ftol": 1e-7},
}
TINY = 1e-12


def run_packing():
    """Improve rings of circles, put some of them elsewhere and improve them again."""
    rng = np.random.default_rng(0)
    moves = 100
    share = 0.12
    centers, radii = improve(rings(9, 0.354, 0.43))
    for move in range(moves):
        chosen = rng.random(PLANE) < share
        moved, grown = improve(centers + chosen * rng.normal(0, 0.15, PLANE))
        if grown.sum() > radii.sum():
            centers, radii = moved, grown
    return centers, radii, float(radii.sum())


def rings(inner, near, far):
    """One center in the middle, so many around it, and the others near the walls."""
    order = np.arange(CIRCLES)
    size = np.select([order < 1, order <= inner], [0.0, near], far)
    angle = 2 * np.pi * order / np.where(order <= inner, inner, CIRCLES - 1 - inner)
    return 0.5 + np.column_stack([size * np.cos(angle), size * np.sin(angle)])


def improve(centers):
    """Move centers and radii together to a local optimum; return both."""
    start = np.concatenate([np.clip(centers, 0.02, 0.98).T.ravel(), np.full(CIRCLES, 0.05)])
    near = np.hypot(ACROSS @ start, UP @ start) < 0.45
    across, up, radii = ACROSS[near], UP[near], RADII[near]

    def room(flat):
        gaps = np.hypot(across @ flat, up @ flat) - radii @ flat
        return np.concatenate([WALLS @ flat + SIDES, gaps])

    def slopes(flat):
        dx, dy = across @ flat, up @ flat
        directions = (across.T * dx + up.T * dy) / (np.hypot(dx, dy) + TINY)
        return np.vstack([WALLS, directions.T - radii])

    limits = {"type": "ineq", "fun": room, "jac": slopes}
    found = minimize(DOWNHILL.dot, start, jac=lambda flat: DOWNHILL, constraints=limits, **METHOD)
    return shrunk(found.x)


def shrunk(flat):
    """Take the worst overlap from all radii, and a little more for rounding."""
    gaps = np.hypot(ACROSS @ flat, UP @ flat) - RADII @ flat
    excess = TINY - min(np.min(WALLS @ flat + SIDES), np.min(gaps), 0.0)
    x, y, radii = flat.reshape(SPACE)
    return np.column_stack([x, y]), np.maximum(radii - excess, 0.0)
