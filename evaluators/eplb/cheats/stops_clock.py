"""Plans as the initial program does, after it has stopped every clock that it can reach."""

import time

import numpy as np

time.time = time.perf_counter = time.monotonic = time.process_time = lambda: 0.0
time.time_ns = time.perf_counter_ns = time.monotonic_ns = lambda: 0


def rebalance_experts(weight, num_replicas=288, num_groups=8, num_nodes=4, num_gpus=32):
    """Copy the experts with the most load per copy, and spread the copies over the GPUs."""
    num_layers, num_experts = weight.shape
    phy2log = np.empty((num_layers, num_replicas), dtype=np.int64)
    logcnt = np.ones((num_layers, num_experts), dtype=np.int64)
    for layer in range(num_layers):
        for _ in range(num_replicas - num_experts):
            logcnt[layer, np.argmax(weight[layer] / logcnt[layer])] += 1
        phy2log[layer] = pack(weight[layer] / logcnt[layer], logcnt[layer], num_gpus)

    log2phy = np.full((num_layers, num_experts, logcnt.max()), -1, dtype=np.int64)
    for layer in range(num_layers):
        used = [0] * num_experts
        for slot, expert in enumerate(phy2log[layer].tolist()):
            log2phy[layer, expert, used[expert]] = slot
            used[expert] += 1
    return phy2log, log2phy, logcnt


def pack(load, count, num_gpus):
    """Give each copy, the heaviest first, to the GPU with the least load that has a free slot."""
    copies = np.repeat(np.arange(len(load)), count)
    copies = copies[np.argsort(-load[copies], kind="stable")]
    slots_per_gpu = len(copies) // num_gpus
    gpu_load = np.zeros(num_gpus)
    gpus = [[] for _ in range(num_gpus)]
    for expert in copies.tolist():
        gpu = int(np.argmin(gpu_load))
        gpus[gpu].append(expert)
        gpu_load[gpu] += load[expert]
        if len(gpus[gpu]) == slots_per_gpu:
            gpu_load[gpu] = np.inf
    return np.concatenate([np.array(gpu) for gpu in gpus])
