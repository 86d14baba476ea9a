"""Placing the experts of a mixture-of-experts model on slots: is a plan whole, is it balanced?

Shapes: L layers, E logical experts in each, P physical slots in each, X the widest list of slots.
A plan is ``phy2log`` (L, P), the expert in each slot; ``log2phy`` (L, E, X), the slots of each
expert, first in its row, then -1; ``logcnt`` (L, E), how many there are. All int64, C-contiguous.
Loads, (L, E) float64, count the tokens sent to each expert and are finite and not negative.

The measures are those of the public EPLB evaluator (Cheng et al., Barbarians at the Gate), which
reads only two of the three arrays of a plan; `find_fault` makes sure that all three say the same.

Does not cover: the loads themselves (``evaluators/eplb``), times, and making a plan.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.jit import jit

Plan = NDArray[np.int64]
Loads = NDArray[np.float64]

NO_FAULT, BAD_EXPERT, NO_SLOT, BAD_COUNT, NO_ROOM, BAD_SLOT, TWICE, NOT_EMPTY = range(8)


class Fault(NamedTuple):
    """What is wrong with a plan, and where.

    ==========  ===========================================================================
    BAD_EXPERT  phy2log[layer, place] is value, which is no expert
    NO_SLOT     expert has no slot in phy2log
    BAD_COUNT   phy2log gives expert value slots, and logcnt another number
    NO_ROOM     expert has value slots, more than log2phy has room for
    BAD_SLOT    log2phy[layer, expert, place] is value, which is no slot of expert
    TWICE       log2phy[layer, expert, place] is value, which its list has already
    NOT_EMPTY   log2phy[layer, expert, place] is value, and has to be -1
    ==========  ===========================================================================

    Entries that a kind does not use are 0.
    """

    kind: int
    layer: int
    expert: int
    place: int
    value: int


@jit
def find_fault(phy2log: Plan, log2phy: Plan, logcnt: Plan) -> Fault:
    """Return the first fault of the plan, by layers, or one of kind NO_FAULT.

    A plan without fault gives every expert at least one slot and every slot one expert, and its
    three arrays agree exactly. Takes O(L (P + E X)) steps.

    Raises:
        ValueError: the shapes do not fit together; unchecked, the kernel would read past the end.
    """
    layers, slots = phy2log.shape
    experts, width = logcnt.shape[1], log2phy.shape[2]
    if logcnt.shape[0] != layers or log2phy.shape[:2] != (layers, experts):
        raise ValueError("Expected shapes (L, P), (L, E, X) and (L, E) of one L and E")
    for layer in range(layers):
        owned = np.zeros(experts, np.int64)
        for slot in range(slots):
            expert = phy2log[layer, slot]
            if not 0 <= expert < experts:
                return Fault(BAD_EXPERT, layer, 0, slot, expert)
            owned[expert] += 1
        listed = np.zeros(slots, np.bool_)
        for expert in range(experts):
            count = owned[expert]
            if count == 0:
                return Fault(NO_SLOT, layer, expert, 0, 0)
            if logcnt[layer, expert] != count:
                return Fault(BAD_COUNT, layer, expert, 0, count)
            if count > width:
                return Fault(NO_ROOM, layer, expert, 0, count)
            for place in range(width):
                slot = log2phy[layer, expert, place]
                if place >= count:
                    if slot != -1:
                        return Fault(NOT_EMPTY, layer, expert, place, slot)
                    continue
                if not 0 <= slot < slots or phy2log[layer, slot] != expert:
                    return Fault(BAD_SLOT, layer, expert, place, slot)
                if listed[slot]:
                    return Fault(TWICE, layer, expert, place, slot)
                listed[slot] = True
    return Fault(NO_FAULT, 0, 0, 0, 0)


@jit
def slot_loads(phy2log: Plan, logcnt: Plan, loads: Loads) -> Loads:
    """Return the load of each slot, (L, P), of a plan without `find_fault`.

    An expert's load is spread evenly over its slots: loads[l, e] / logcnt[l, e]. One rounding
    each, a relative error of at most u = 2^-53.

    Raises:
        ValueError: the shapes do not fit together.
    """
    layers, slots = phy2log.shape
    if logcnt.shape != loads.shape or logcnt.shape[0] != layers:
        raise ValueError("Expected shapes (L, P), (L, E) and (L, E) of one L and E")
    result = np.empty((layers, slots), np.float64)
    for layer in range(layers):
        for slot in range(slots):
            expert = phy2log[layer, slot]
            result[layer, slot] = loads[layer, expert] / logcnt[layer, expert]
    return result


def device_loads(slots: Loads, devices: int) -> Loads:
    """Return the load of each device, (L, D), of loads of slots (L, P) with D that divides P.

    Device 0 has the first P / D slots, and so on. A sum has a relative error of at most P / D u.
    """
    layers, places = slots.shape
    by_device = slots.reshape(layers, devices, places // devices)
    return np.asarray(by_device.sum(axis=2), dtype=np.float64)


def load_blind_plan(layers: int, experts: int, slots: int) -> tuple[Plan, Plan]:
    """Return ``phy2log`` and ``logcnt`` of the plan that looks at no load, for E <= P.

    Each expert has one slot, and the further slots go round by the experts' numbers: slot s has
    expert s mod E, in every layer. What it is worth is had for nothing.
    """
    row = np.arange(slots) % experts
    counts = np.bincount(row, minlength=experts)
    return np.tile(row, (layers, 1)), np.tile(counts, (layers, 1))


@jit
def balancedness(loads: Loads) -> float:
    """Return sum_l mean_p loads[l, p] / sum_l max_p loads[l, p], in [0, 1]; 0 if all loads are 0.

    ``loads`` has shape (L, P): of slots, or of other places that share the work, such as GPUs.
    All terms are of one sign, so the relative error is at most (P + 2L + 4) u, 5e-14 at P = 288,
    L = 58; the result is cut at 1.
    """
    layers, places = loads.shape
    mean, largest = 0.0, 0.0
    for layer in range(layers):
        total, peak = 0.0, 0.0
        for place in range(places):
            total += loads[layer, place]
            peak = max(peak, loads[layer, place])
        mean += total / places
        largest += peak
    return min(1.0, mean / largest) if largest > 0.0 else 0.0
