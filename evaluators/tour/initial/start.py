"""The first tour. What stands in the block may change."""


# EVOLVE-BLOCK-START
def first_tour(distances):
    """Return a tour that goes to the nearest point that it has not visited, from point 0 on."""
    tour = [0]
    left = set(range(1, len(distances)))
    while left:
        row = distances[tour[-1]]
        nearest = min(left, key=lambda point: row[point])
        left.remove(nearest)
        tour.append(nearest)
    return tour


# EVOLVE-BLOCK-END
