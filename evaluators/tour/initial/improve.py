"""Steps that make a tour shorter. What stands in the block may change."""


def reverse(tour, first, last):
    """Turn round the part of a tour from place ``first`` to place ``last``."""
    tour[first : last + 1] = tour[first : last + 1][::-1]


# EVOLVE-BLOCK-START
def shorter(tour, distances):
    """Return a tour without crossings that lie close to each other: 2-opt with a short reach."""
    reach = 6
    rounds = 2
    size = len(tour)
    for _ in range(rounds):
        for i in range(1, size - 1):
            for j in range(i + 1, min(i + reach, size - 1)):
                a, b, c, d = tour[i - 1], tour[i], tour[j], tour[j + 1]
                before = distances[a][b] + distances[c][d]
                after = distances[a][c] + distances[b][d]
                if after < before:
                    reverse(tour, i, j)
    return tour


# EVOLVE-BLOCK-END
