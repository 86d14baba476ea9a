import numpy as np


def run_packing():
    """Improve the proposal, then shake and improve it twice; return the best packing."""
    best = improve(*propose(), effort=1, seed=0)
    for seed in (1, 2):
        shaken = perturb(*best[:2], intensity=0.1, seed=seed)
        found = improve(*shaken, effort=1, seed=seed)
        if found[2] > best[2]:
            best = found
    return best


def propose():
    """One circle in the middle, 8 around it and 17 near the walls."""
    centers = [(0.5, 0.5)]
    for count, radius in ((8, 0.25), (17, 0.43)):
        angles = 2 * np.pi * np.arange(count) / count
        for angle in angles:
            centers.append((0.5 + radius * np.cos(angle), 0.5 + radius * np.sin(angle)))
    centers = np.array(centers)
    return centers, grow_radii(centers)


def improve(centers, radii, effort, seed):
    """Move one circle at a time to where it may grow; at first also where it has to shrink."""
    rng = np.random.default_rng(seed)
    centers, radii = centers.copy(), radii.copy()
    steps = 50 * effort
    for step in range(steps):
        heat = 1 - step / steps
        i = rng.integers(len(radii))
        size = 0.1 * heat * 10 ** rng.uniform(-2, 0)
        center = centers[i] + size * rng.standard_normal(2)
        gaps = np.hypot(*(centers - center).T) - radii
        gaps[i] = min(*center, *(1 - center))
        gain = np.min(gaps) - radii[i]
        if gain > -radii[i] and gain > 0.003 * heat * np.log(rng.random()):
            centers[i] = center
            radii[i] += gain
    radii *= 1 - 1e-12
    return centers, radii, float(np.sum(radii))


def perturb(centers, radii, intensity, seed):
    """Shake all centers."""
    rng = np.random.default_rng(seed)
    centers = np.clip(centers + intensity * rng.normal(0, 0.1, centers.shape), 0.01, 0.99)
    return centers, grow_radii(centers)


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
    return radii
