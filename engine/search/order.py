"""The order of an island's iterations, which whoever learns from them insists on."""

from __future__ import annotations


def in_order(iteration: int, *, after: int) -> int:
    """Return an iteration's number.

    Args:
        iteration: that is told now.
        after: the last one that was told; -1 before the first.

    Raises:
        ValueError: it is not later than ``after``.
    """
    if iteration <= after:
        raise ValueError(f"iteration {iteration} was told after iteration {after}")
    return iteration
