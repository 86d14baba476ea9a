import numpy as np
from scipy.optimize import linprog, minimize

def run_packing():
    """Place the centers on rings and let the circles grow until they touch."""
    centers = place_centers()
    radii = grow_radii(centers)
    return (centers, radii, float(np.sum(radii)))

def place_centers():
    """One circle in the middle, 8 around it and 17 near the walls."""
    centers = [(0.5, 0.4836139630909189)]
    for count, radius in ((8, 0.25), (17, 0.43)):
        angles = 2 * np.pi * np.arange(count) / count
        for angle in angles:
            centers.append((0.5047884352896562 + radius * np.cos(angle), 0.5009618048438782 + radius * np.sin(angle)))
    return np.array(centers)

def grow_radii(centers):
    """Start at the walls and shrink every pair that overlaps, in proportion."""
    radii = np.min(np.hstack([centers, 1 - centers]), axis=1)
    for i in range(len(radii)):
        for j in range(i + 1, len(radii)):
            distance = np.linalg.norm(centers[i] - centers[j])
            if radii[i] + radii[j] > distance:
                scale = distance / (radii[i] + radii[j])
                radii[i] *= scale
                radii[j] *= scale
    return radii * (1 - 9.375944273349723e-13)
