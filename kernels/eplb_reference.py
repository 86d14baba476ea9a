"""Plain NumPy versions of ``kernels.eplb``, which the tests hold the compiled ones against.

Same arguments and shapes; see there for the formulas. Not for use in scoring.
"""

from __future__ import annotations

import numpy as np

from kernels.eplb import Loads, Plan


def is_whole(phy2log: Plan, log2phy: Plan, logcnt: Plan) -> bool:
    """Return whether `kernels.eplb.find_fault` should find nothing: by sets of slots."""
    experts = logcnt.shape[1]
    for slots, lists, counts in zip(phy2log, log2phy, logcnt, strict=True):
        if not np.isin(slots, np.arange(experts)).all():
            return False
        for expert in range(experts):
            owned = np.flatnonzero(slots == expert)
            used, rest = np.split(lists[expert], [max(0, counts[expert])])
            if not (owned.size == counts[expert] >= 1 and np.array_equal(np.sort(used), owned)):
                return False
            if (rest != -1).any():
                return False
    return True


def slot_loads(phy2log: Plan, logcnt: Plan, loads: Loads) -> Loads:
    """Return the load of each slot; see `kernels.eplb.slot_loads`."""
    return np.asarray(np.take_along_axis(loads / logcnt, phy2log, axis=1), dtype=np.float64)


def balancedness(loads: Loads) -> float:
    """Return the ratio of means to maxima; see `kernels.eplb.balancedness`."""
    largest = loads.max(axis=1).sum()
    return float(loads.mean(axis=1).sum() / largest) if largest > 0 else 0.0
