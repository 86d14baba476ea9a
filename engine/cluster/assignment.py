"""Which worker has which islands, by what each worker is measured to do.

A worker is expected to end when it has done what is left of its islands at its rate. An island goes
to the worker that would end first with it, and moves where that ends two workers clearly earlier:
what is under way on an island is generated again where it goes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

_GAIN = 0.8  # a move is worth it where the later one of two workers ends in this share of the time


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What a worker has to do.

    Attributes:
        left: of each of its islands, in candidates or in any unit that all workers' loads have.
        rate: that it does in a second; None as long as that was not measured.
    """

    left: Mapping[int, float]
    rate: float | None


def taker(loads: Sequence[Load], *, left: float) -> int:
    """Return the place of the worker that would end first with one more island."""
    rates = _rates(loads)
    return min(range(len(loads)), key=lambda n: (sum(loads[n].left.values()) + left) / rates[n])


def better(loads: Sequence[Load]) -> tuple[int, int, int] | None:
    """Return the move that helps most: the island, its worker's place, and the other worker's.

    None where no move is worth it.
    """
    if len(loads) < 2:
        return None
    rates = _rates(loads)
    ends = [sum(load.left.values()) / rate for load, rate in zip(loads, rates, strict=True)]
    slow = max(range(len(loads)), key=ends.__getitem__)

    def later(number: int, to: int) -> float:
        """Return when the later one of the two ends, after the move."""
        left = loads[slow].left[number]
        return max(ends[slow] - left / rates[slow], ends[to] + left / rates[to])

    moves = [
        (later(number, to), number, to)
        for number in sorted(loads[slow].left)
        for to in range(len(loads))
        if to != slow
    ]
    if not moves:
        return None
    end, number, to = min(moves)
    return (number, slow, to) if end <= _GAIN * ends[slow] else None


def _rates(loads: Sequence[Load]) -> list[float]:
    """Return what each worker does; one that was not measured is taken for an average one."""
    known = [load.rate for load in loads if load.rate]
    usual = fmean(known) if known else 1.0
    return [load.rate or usual for load in loads]
