"""Makes room for one large circle by circles of less than nothing."""

import numpy as np


def run_packing():
    radii = np.full(26, -1.0)
    radii[0] = 30.0
    return np.full((26, 2), 0.5), radii, radii.sum()
