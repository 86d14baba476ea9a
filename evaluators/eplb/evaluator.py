"""The ``eplb`` problem: expert-parallel load balancing, planned on one window, used on the next.

For each window of a load history but the last, the program plans where copies of the experts go;
the plan is scored with the loads of the window after it, which the program does not see. Each call
runs in a process of its own (``isolate_cases``), so that no call sees a later window.

score = (balancedness + 0.002 / seconds) / 2, both means over the windows: the mean of the balance
of the devices' load and of the speed, as in PACEvolve++, section 4.1.1. The load of a GPU is that
of its slots, 9 in a row, and an expert's load is split evenly over the expert's slots.
``slot_balancedness`` is the same of single slots, which is what the public evaluator of Barbarians
at the Gate has in its score. The paper does not say in which unit the speed is; 0.002 seconds are
that evaluator's. Other than there:

- ``seconds`` is the time of the call's whole process as the sandbox takes it from outside
  (`engine.core.SECONDS`), as a clock inside could be changed by the program. It is an upper bound
  of the call alone: running the module's top level, handing over the arguments and taking the
  arrays back come on top, some milliseconds, more for a wide ``log2phy``. The public evaluator's
  clock also runs while it simulates in Python, which takes longer than a fast plan; published
  scores do not compare in the speed term.
- The formula has no upper limit on the speed term, so that a plan which balances nothing, made in
  3 milliseconds, would beat a balanced one made in 40. Here a plan is refused if its balancedness
  over a window is not `MARGIN` of the way from that of the load-blind plan
  (`kernels.eplb.load_blind_plan`) over the same one to 1. Above that floor speed still counts as in
  the formula, and a little balance made fast may beat a lot: ``balancedness`` is to be read beside
  the score.
- A plan whose three arrays do not agree is refused (`kernels.eplb.find_fault`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.core import SECONDS, Array, ArraySpec, Case, Outputs, Rejected, Stage
from kernels import eplb
from kernels.eplb import Fault, Loads

from .loads import generate_windows, read_windows

REPLICAS, GROUPS, NODES, GPUS = 288, 8, 4, 32
FAST_SECONDS = 0.002
SCREEN_LAYERS = 8
MARGIN = 0.1
"""How far above the load-blind plan a plan has to be, of the way from there to full balance: others
that look at no load, but give the further slots to other experts, come up to 0.04 far, by luck."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluator:
    """The problem for the windows of one load history, each of shape (L, E)."""

    windows: tuple[Loads, ...]

    def cases(self) -> Sequence[Case]:
        """Return one call for each window that has a next one."""
        return [_case(i, window) for i, window in enumerate(self.windows[:-1])]

    def score(self, outputs: Sequence[Outputs]) -> Mapping[str, float]:
        """Score the plans, in the windows' order.

        Returns:
            ``score``, ``balancedness``, ``slot_balancedness`` and ``seconds``, means over the
            windows, and ``speed``, which is 0.002 / seconds.

        Raises:
            Rejected: a plan is not whole, or balances hardly better than the load-blind one; the
                message names the window and the first fault, or both numbers.
        """
        plans = list(zip(outputs, self.windows[1:], strict=True))
        measured = np.array([_measure(i, plan, loads) for i, (plan, loads) in enumerate(plans)])
        gpus, slots, seconds = measured.mean(axis=0).tolist()
        speed = FAST_SECONDS / seconds
        return {
            "score": (gpus + speed) / 2,
            "balancedness": gpus,
            "slot_balancedness": slots,
            "speed": speed,
            "seconds": seconds,
        }

    def screens(self) -> Sequence[Stage]:
        """Return the cheap stage: one plan, of the first layers only, with the same formula.

        The floor under the balancedness is that of these layers. The speed term is higher than
        the full one's, as there is less to plan.
        """
        few = Evaluator(windows=tuple(window[:SCREEN_LAYERS] for window in self.windows[:2]))
        return [Stage(name="one_window", cases=tuple(few.cases()), score=few.score)]


def with_data(path: Path | None) -> Evaluator:
    """Return the problem for the load history in ``path``, or for a generated one.

    Raises:
        UserError: the file is not such a history; see `loads`.
    """
    if path is None:
        return Evaluator(windows=generate_windows())
    return Evaluator(windows=read_windows(path, slots=REPLICAS))


def _case(index: int, window: Loads) -> Case:
    layers, experts = window.shape
    longest = REPLICAS - experts + 1  # list of slots that leaves one for each other expert
    shapes: dict[str, tuple[int | range, ...]] = {
        "phy2log": (layers, REPLICAS),
        "log2phy": (layers, experts, range(1, longest + 1)),
        "logcnt": (layers, experts),
    }
    return Case(
        name=f"window {index}",
        args=(window, REPLICAS, GROUPS, NODES, GPUS),
        outputs={name: ArraySpec(shape=shape, dtype="int64") for name, shape in shapes.items()},
    )


def _measure(index: int, plan: Outputs, loads: Loads) -> tuple[float, float, float]:
    """Return the balancedness over GPUs and over slots, and the seconds."""
    phy2log, log2phy, logcnt = (
        np.ascontiguousarray(plan[name], dtype=np.int64)
        for name in ("phy2log", "log2phy", "logcnt")
    )
    fault = eplb.find_fault(phy2log, log2phy, logcnt)
    if fault.kind != eplb.NO_FAULT:
        raise Rejected(f"window {index}: {_explain(fault, logcnt, log2phy.shape[2])}")
    loads = np.ascontiguousarray(loads)
    slots = eplb.slot_loads(phy2log, logcnt, loads)
    balanced = eplb.balancedness(eplb.device_loads(slots, GPUS))
    layers, experts = loads.shape
    blind = eplb.slot_loads(*eplb.load_blind_plan(layers, experts, REPLICAS), loads)
    by_luck = eplb.balancedness(eplb.device_loads(blind, GPUS))
    floor = by_luck + MARGIN * (1 - by_luck)
    if balanced < floor:
        raise Rejected(
            f"window {index}: the plan's balancedness is {balanced:.6g}; it has to be at least "
            f"{floor:.6g}, as {by_luck:.6g} is that of a plan that looks at no load"
        )
    return balanced, eplb.balancedness(slots), float(plan[SECONDS])


def _explain(fault: Fault, logcnt: Array, width: int) -> str:
    layer, expert, place, value = fault[1:]
    listed = f"log2phy[{layer}, {expert}, {place}] is {value}"
    return {
        eplb.BAD_EXPERT: f"phy2log[{layer}, {place}] is {value}; "
        f"experts are 0 to {logcnt.shape[1] - 1}",
        eplb.NO_SLOT: f"expert {expert} of layer {layer} has no slot in phy2log; each needs one",
        eplb.BAD_COUNT: f"logcnt[{layer}, {expert}] is {logcnt[layer, expert]}, but phy2log gives "
        f"that expert {value} slots",
        eplb.NO_ROOM: f"expert {expert} of layer {layer} has {value} slots, and log2phy has room "
        f"for {width}",
        eplb.BAD_SLOT: f"{listed}, and phy2log[{layer}] has that expert elsewhere",
        eplb.TWICE: f"{listed}, a slot that it lists already",
        eplb.NOT_EMPTY: f"{listed}; after the expert's {logcnt[layer, expert]} slots it must be -1",
    }[fault.kind]
