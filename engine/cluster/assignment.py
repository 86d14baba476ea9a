"""Which worker has which islands, by what each worker is measured to do.

A worker is expected to end when it has done what is left of its islands at its rate. An island goes
to the worker that would end first with it. Islands move, one by one, between two workers of which
the later one would end clearly earlier if they shared equally: what is under way on an island is
generated again where it goes. Where the KV of its prompts lies in its machine, a worker there is
taken before one that would end little earlier.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

_GAIN = 0.8  # workers that would end in this share of the time, or less, end clearly earlier
_STEP = 0.99  # and one island on the way to that, of many, has to bring this much
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What a worker has to do.

    Attributes:
        left: of each of its islands, in candidates or in any unit that all workers' loads have.
        rate: that it does in a second; None as long as that was not measured.
        node: its machine, where the KV of its islands' prompts outlives it; empty where none does.
    """

    left: Mapping[int, float]
    rate: float | None
    node: str = ""


def taker(loads: Sequence[Load], *, left: float, warm: str = "") -> int:
    """Return the place of the worker that takes one more island.

    Args:
        loads: of the workers.
        left: of the island.
        warm: the machine that has the KV of its prompts; empty for none.
    """
    rates = _rates(loads)
    return _first(
        range(len(loads)),
        ends=lambda n: (sum(loads[n].left.values()) + left) / rates[n],
        is_warm=lambda n: bool(warm) and loads[n].node == warm,
    )


def better(loads: Sequence[Load]) -> tuple[int, int, int] | None:
    """Return the move that helps most: the island, its worker's place, and the other worker's.

    None where no move is worth it.
    """
    if len(loads) < 2:
        return None
    rates = _rates(loads)
    ends = [sum(load.left.values()) / rate for load, rate in zip(loads, rates, strict=True)]
    slow = max(range(len(loads)), key=ends.__getitem__)

    def later(move: tuple[int, int]) -> float:
        """Return when the later one of the two ends, after the move."""
        number, to = move
        left = loads[slow].left[number]
        return max(ends[slow] - left / rates[slow], ends[to] + left / rates[to])

    def is_worth_it(to: int) -> bool:
        """Return whether the two would end clearly earlier if they shared equally."""
        done = ends[slow] * rates[slow] + ends[to] * rates[to]
        return done / (rates[slow] + rates[to]) <= _GAIN * ends[slow]

    moves = [
        (number, to)
        for to in sorted(range(len(loads)), key=ends.__getitem__)  # of equals, who ends first
        if to != slow and is_worth_it(to)
        for number in sorted(loads[slow].left)
        if later((number, to)) <= _STEP * ends[slow]
    ]
    if not moves:
        return None
    here = loads[slow].node
    number, to = _first(
        moves, ends=later, is_warm=lambda move: bool(here) and loads[move[1]].node == here
    )
    return number, slow, to


def _first(choices: Iterable[T], *, ends: Callable[[T], float], is_warm: Callable[[T], bool]) -> T:
    """Return the choice that ends first, or the first warm one that ends little later."""
    every = sorted(choices, key=ends)
    warm = next(filter(is_warm, every), every[0])
    return warm if ends(every[0]) >= _GAIN * ends(warm) else every[0]


def _rates(loads: Sequence[Load]) -> list[float]:
    """Return what each worker does; one that was not measured is taken for an average one."""
    known = [load.rate for load in loads if load.rate]
    usual = fmean(known) if known else 1.0
    return [load.rate or usual for load in loads]
