"""What a worker says of itself and of its islands, and of which stay of an island it says it.

A **stay** is one time that an island is at a worker, and stays of an island are numbered:

1. The driver notes the worker and a number above all before it, and then calls `Worker.add`.
2. The worker's thread forgets what earlier stays here have left, lets the island go on or notes
   why it can't, and last of all notes the number.
3. `Worker.report` copies the numbers before all else. So what it says of an island is of the stay
   that it names, or of a later one; and then the driver has noted a higher number.
4. The driver believes what a report says of an island only where it has noted that worker and that
   number for it: then it is of this stay.
5. The stay is over as soon as the driver notes another worker, or none: because a report that it
   believes says that the island is over, has stopped or is lost here, because the worker is lost,
   or because the island is to move, which `Worker.remove` tells the worker.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.cluster.learning.island_learner import Standing
from engine.learning import Group


@dataclass(frozen=True, kw_only=True, slots=True)
class IslandReport:
    """How an island stands.

    Attributes:
        candidates: evaluated so far.
        best_score: None before there is one.
        is_over: whether it has spent its share of the budget.
        has_stopped: whether it has come to its end here, because its worker was asked to stop.
    """

    candidates: int
    best_score: float | None
    is_over: bool = False
    has_stopped: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerReport:
    """How a worker stands.

    Attributes:
        islands: those that are here, or were when they ended, stopped or were lost.
        lost: islands that could not go on here, each with the reason.
        stays: which stay of an island the two are about; see the module.
        candidates: evaluated since it has had these islands.
        seconds: since then.
        error: what ended it; empty while it lives.
        groups: what the islands have judged since the last report, where the model learns.
        standings: of the islands, for the trainer.
    """

    islands: Mapping[int, IslandReport]
    lost: Mapping[int, str]
    candidates: int
    seconds: float
    error: str
    stays: Mapping[int, int] = field(default_factory=dict)
    groups: Sequence[Group] = ()
    standings: Mapping[int, Standing] = field(default_factory=dict)
