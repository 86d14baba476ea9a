"""Which cores the evaluators are bound to, and which are left to the model.

Evaluators get the last of the cores that this process may use: one thread of each physical core
first, taken from the NUMA nodes in turn. Memory follows: a thread, its zygote and the results that
pass between them lie on one core, and Linux places memory where it is first touched.

Beside a GPU the model's thread launches kernels and copies tokens, which is slower from another
node. So evaluators get the cores of the GPU's node last, and the model keeps to that node.
"""

import os
from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path

SYSTEM = Path("/sys/devices/system")


def evaluator_cores(
    workers: int, *, gpu_node: int | None = None, system: Path = SYSTEM
) -> list[int]:
    """Return the core of each worker; cores are used more than once if there are too few.

    Args:
        workers: how many there are.
        gpu_node: NUMA node of the GPU; None for no GPU, or one of which that is not known.
        system: the kernel's description of the machine.
    """
    order = _order(sorted(os.sched_getaffinity(0)), system)
    order.sort(key=lambda core: _node(core, system) == gpu_node)  # else as it was
    return [order[index % len(order)] for index in range(workers)]


def model_cores(
    taken: Sequence[int], *, gpu_node: int | None = None, system: Path = SYSTEM
) -> list[int]:
    """Return the cores for the threads of the model, and of all else but the evaluators.

    These are the cores that no evaluator is bound to, or all cores if none is left. A model that
    decodes on the CPU needs cores of its own, even if that leaves it one of two: its threads wait
    for each other in every kernel, so a thread that shares a core with an evaluator delays all.

    Of these, only those of the GPU's node are returned, if there are any.
    """
    available = sorted(os.sched_getaffinity(0))
    free = [core for core in available if core not in taken] or available
    return [core for core in free if _node(core, system) == gpu_node] or free


def _order(cores: Sequence[int], system: Path) -> list[int]:
    """Return ``cores`` in the order in which evaluators take them."""
    nodes: dict[int, list[int]] = {}
    for core in reversed(cores):
        nodes.setdefault(_node(core, system), []).append(core)
    by_node = [_siblings_last(members, system) for members in nodes.values()]
    return [core for core in chain.from_iterable(zip_longest(*by_node)) if core is not None]


def _siblings_last(cores: Sequence[int], system: Path) -> list[int]:
    """Return ``cores`` with the second threads of physical cores behind all the first ones."""
    first: dict[str, int] = {}
    second = []
    for core in cores:
        path = system / f"cpu/cpu{core}/topology/thread_siblings_list"
        physical = path.read_text().strip() if path.is_file() else str(core)
        if first.setdefault(physical, core) != core:
            second.append(core)
    return [*first.values(), *second]


def _node(core: int, system: Path) -> int:
    """Return the NUMA node of ``core``; 0 where the kernel knows none."""
    for path in (system / f"cpu/cpu{core}").glob("node[0-9]*"):
        return int(path.name.removeprefix("node"))
    return 0
