"""The entry point: a first tour, then steps that make it shorter. It stays as it is."""

import improve
import numpy as np
import start


def plan_tour(points):
    """Return the order in which to visit the points, as a list of their numbers."""
    steps = points[:, None, :] - points[None, :, :]
    distances = np.sqrt((steps**2).sum(axis=-1)).tolist()
    tour = start.first_tour(distances)
    return {"tour": improve.shorter(list(tour), distances)}
