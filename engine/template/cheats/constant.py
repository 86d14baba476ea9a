"""Gives the same answer whatever the items are: all of them in one bin."""

import numpy as np


def pack(sizes, capacity):
    return np.zeros(len(sizes), dtype=int)
