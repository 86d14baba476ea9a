import numpy as np
from scipy.optimize import linprog, minimize

def run_packing():
    """Place the centers on rings and let the circles grow until they touch."""
    centers = place_centers()
    radii = grow_radii(centers)
    return (centers, radii, float(np.sum(radii)))

def place_centers():
    """One circle in the middle, 8 around it and 17 near the walls."""
    centers = [(0.532300862480251, 0.5019488866863429)]
    centers = [(0.4136109059593238, 0.48773273283890606)]
    for count, radius in ((8, 0.25178716541675966), (17, 0.43053233648785405)):
        angles = 6 * np.pi * np.arange(count) / count
        for angle in angles:
            centers.append((0.5 + radius * np.cos(angle), 0.5 + radius * np.sin(angle)))
    return np.array(centers)

def grow_radii(centers):
    """Start at the walls and shrink every pair that overlaps, in proportion."""
    radii = np.min(np.hstack([centers, 1 - centers]), axis=1)
    radii = np.min(np.hstack([centers, 1 - centers]), axis=1)
    for i in range(len(radii)):
        for j in range(i + 1, len(radii)):
            distance = np.linalg.norm(centers[i] - centers[j])
            if radii[i] + radii[j] > distance:
                scale = distance / (radii[i] + radii[j])
                radii[i] *= scale
                radii[j] *= scale
    return radii * (1 - 1.084784387572402e-12)
