import numpy as np


def pack(sizes, capacity):
    """Take the items as they come, and put each into the bin that is least full."""
    bins = np.zeros(len(sizes), dtype=int)
    room = []  # what is left in each bin
    for item in range(len(sizes)):
        chosen = -1
        for number in range(len(room)):
            if room[number] < sizes[item]:
                continue
            if chosen < 0 or room[number] > room[chosen]:
                chosen = number
        if chosen < 0:
            chosen = len(room)
            room.append(0.95 * capacity)  # a little stays free, to be safe
        room[chosen] -= sizes[item]
        bins[item] = chosen
    return bins
