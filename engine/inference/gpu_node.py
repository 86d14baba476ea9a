"""Which NUMA node the GPU hangs on, from what the kernel and the driver's files say.

Nothing of CUDA is loaded, since cores are split before the model's process is set up.
"""

import os
import re
from pathlib import Path


def gpu_node(*, root: Path = Path("/")) -> int | None:
    """Return the node of the first GPU that CUDA will show; None if that is not known.

    A container sees the driver's files of all GPUs of the machine, but only the devices of its own.
    """
    addresses = []
    for path in root.glob("proc/driver/nvidia/gpus/*/information"):
        minor = re.search(r"Device Minor:\s*(\d+)", path.read_text())
        if minor and (root / f"dev/nvidia{minor[1]}").exists():
            addresses.append(path.parent.name.lower())
    every = sorted(addresses)  # CUDA counts equal GPUs in the order of their addresses
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0].strip() or "0"
    if first.isdecimal():
        every = every[int(first) :][:1]
    nodes = {_node(root / "sys/bus/pci/devices" / address / "numa_node") for address in every}
    return nodes.pop() if len(nodes) == 1 else None


def _node(path: Path) -> int | None:
    try:
        node = int(path.read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None  # -1: the machine has but one
